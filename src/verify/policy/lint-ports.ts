/** Ports of rules that no container of the pods in question has. */
import type { Finding } from '#base/finding'
import { printPortRange } from '#base/port-range'
import { listOf } from '#base/text'
import type { CompiledPolicy, PolicyRule, PortMatch } from '#compile/policy/policy-rule'
import type { ContainerPort, Pod } from '#model/pod'
import { lintFinding } from './findings'
import type { LintContext, PodClass } from './lint-context'

export function lintPorts(context: LintContext): readonly Finding[] {
  return context.world.policies.flatMap((policy) =>
    policy.rules.flatMap((rule) => {
      // A port that is denied, just in case, is better not there.
      if (rule.ports === 'any' || rule.action !== 'allow') return []
      const targets = targetsOf(context, policy, rule)
      return targets === undefined ? [] : rule.ports.flatMap((port) => lintPort(policy, port, targets))
    }),
  )
}

/** The pods that the ports are those of; undefined where others than pods are meant as well. */
function targetsOf(context: LintContext, policy: CompiledPolicy, { peers }: PolicyRule): readonly Pod[] | undefined {
  const podsOf = (classes: readonly PodClass[]): readonly Pod[] => classes.flatMap(({ pods }) => pods)
  if (policy.direction === 'ingress') return podsOf(context.subjectsOf(policy))
  if (peers === 'any' || peers.some(({ kind }) => kind !== 'pods')) return undefined
  return podsOf(context.pods.filter(({ party }) => peers.some((peer) => context.match(peer, party) !== 'no')))
}

/** What containers declare is a hint: pods that declare no port at all tell nothing. */
function lintPort({ source }: CompiledPolicy, port: PortMatch, pods: readonly Pod[]): readonly Finding[] {
  const declared = pods.flatMap(portsOf)
  if (pods.length === 0) return []
  const isNumber = port.kind === 'range'
  if (isNumber && (declared.length === 0 || port.range.from !== port.range.to)) return []
  if (declared.some((one) => isSame(port, one))) return []
  const own = [
    ...new Set(
      declared.map(
        ({ name, containerPort, protocol }) => `${name === undefined ? '' : `${name} `}${containerPort}/${protocol}`,
      ),
    ),
  ]
  const known = own.length === 0 ? 'they declare no ports' : `they have ${listOf(own, 5)}`
  const shown = isNumber ? printPortRange(port.range) : `"${port.name}"`
  const protocol = port.protocol ?? 'any protocol'
  const outcome = isNumber ? '' : ', so that it leads nowhere'
  const message = `no container of the pods has port ${shown} over ${protocol}${outcome}: ${known}`
  const hint = isNumber
    ? 'after a Service has translated, the port is that of the container'
    : 'write a name that the containers declare'
  return [lintFinding('policy.no-such-port', source, { message, path: port.path, hint })]
}

function portsOf({ containers, initContainers }: Pod): readonly ContainerPort[] {
  return [...containers, ...initContainers].flatMap(({ ports }) => ports)
}

function isSame(port: PortMatch, { name, containerPort, protocol }: ContainerPort): boolean {
  if (port.protocol !== undefined && port.protocol !== protocol) return false
  if (port.kind === 'named') return port.name === name
  return containerPort >= port.range.from && containerPort <= port.range.to
}
