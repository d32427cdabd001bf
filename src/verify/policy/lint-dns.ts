/** Pods that may send somewhere but not ask the cluster's DNS. */
import type { Finding } from '#base/finding'
import { listOf } from '#base/text'
import type { CompiledPolicy } from '#compile/policy/policy-rule'
import { keyOf } from '#model/meta'
import type { Pod } from '#model/pod'
import { decide } from '#trace/policy/decide'
import { lintFinding } from './findings'
import type { LintContext, PodClass } from './lint-context'

const protocols = ['UDP', 'TCP'] as const
const dnsLabel = 'k8s-app'
const dnsNames: readonly string[] = ['kube-dns', 'coredns']

/** Told of each policy that closes pods for egress, with all pods and protocols. */
export function lintDns(context: LintContext): readonly Finding[] {
  const servers = context.pods.filter(({ pods }) => pods.some(isDnsPod))
  const blocked = new Map<CompiledPolicy, { readonly names: string[]; readonly protocols: Set<string> }>()
  for (const subject of context.pods) {
    if (servers.includes(subject)) continue
    const policies = context.policiesOf(subject, 'egress')
    const isolating = policies.find(({ isolates }) => isolates)
    const isOpen = policies.some(({ rules }) => rules.some(({ action }) => action === 'allow'))
    if (isolating === undefined || !isOpen) continue
    const closed = protocols.filter((protocol) => !reachesDns(context, { subject, policies, servers, protocol }))
    if (closed.length === 0) continue
    const told = blocked.get(isolating) ?? { names: [], protocols: new Set() }
    for (const { meta } of subject.pods) told.names.push(keyOf(meta))
    for (const protocol of closed) told.protocols.add(protocol)
    blocked.set(isolating, told)
  }
  return [...blocked].map(([policy, { names, protocols: closed }]) => {
    const over = [...closed].join(' and ')
    return lintFinding('policy.dns-blocked', policy.source, {
      message: `${listOf(names.sort(), 3)} cannot ask the cluster’s DNS over ${over}: no policy allows port 53 to it`,
      path: policy.subject.path,
      hint: 'allow egress to the pods of namespace kube-system with k8s-app=kube-dns on port 53, UDP and TCP',
    })
  })
}

function isDnsPod({ meta }: Pod): boolean {
  return dnsNames.includes(meta.labels[dnsLabel] ?? '')
}

type Asked = {
  readonly subject: PodClass
  readonly policies: readonly CompiledPolicy[]
  readonly servers: readonly PodClass[]
  readonly protocol: (typeof protocols)[number]
}

/** Where the input holds no DNS pods, a rule for port 53 to anybody counts. */
function reachesDns({ world }: LintContext, { subject, policies, servers, protocol }: Asked): boolean {
  if (servers.length > 0) {
    return servers.some((server) => {
      const port = dnsPort(server, protocol)
      return decide(world, { source: subject.party.id, target: server.party.id, protocol, port }) !== 'denied'
    })
  }
  return policies.some(({ rules }) =>
    rules.some(
      ({ action, ports }) =>
        action === 'allow' &&
        (ports === 'any' ||
          ports.some(
            (port) =>
              (port.protocol ?? protocol) === protocol &&
              (port.kind === 'named' || (port.range.from <= 53 && port.range.to >= 53)),
          )),
    ),
  )
}

/** A server may listen elsewhere, behind the Service's port 53. */
function dnsPort({ pods: [pod] }: PodClass, protocol: string): number {
  const ports = pod?.containers.flatMap((container) => container.ports) ?? []
  const own = ports.filter((port) => port.protocol === protocol)
  const named = own.find(({ name }) => name === 'dns' || name === 'dns-tcp')
  return (named ?? own.find(({ containerPort }) => containerPort === 53))?.containerPort ?? 53
}
