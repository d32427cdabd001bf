/** The policies that say nothing of a connection in one direction, each with the first thing that keeps it from doing so. */
import { listOf } from '#base/text'
import type { CompiledPolicy, PeerMatch, PolicyRule, PortMatch } from '#compile/policy/policy-rule'
import type { OtherPolicy } from './answer'
import { describePoint, describePorts, describeRule } from './describe-policy'
import { matchPeer } from './lane'
import type { PolicyWorld } from './policy-world'
import type { Lane, LanePoint, RuleAtPort } from './semantics'

export function explainOthers(
  world: PolicyWorld,
  lane: Lane,
  { at, rules }: { readonly at: LanePoint; readonly rules: readonly RuleAtPort[] },
): readonly OtherPolicy[] {
  const speaking = new Set(rules.map(({ policy }) => policy))
  const spoken = new Set<string>()
  const others = world.policies
    .filter(({ direction }) => direction === lane.direction)
    .flatMap((policy): OtherPolicy[] => {
      spoken.add(nameOf(policy))
      if (speaking.has(policy)) return []
      const { object, origin } = policy.source
      return [{ object, origin, ...explainPolicy(world, policy, { lane, at }) }]
    })
  return [...others, ...silentOnes(world, spoken, lane)]
}

type Context = { readonly lane: Lane; readonly at: LanePoint }

function explainPolicy(
  world: PolicyWorld,
  policy: CompiledPolicy,
  { lane, at }: Context,
): Pick<OtherPolicy, 'why' | 'path'> {
  if (!lane.policies.includes(policy)) {
    return { path: policy.subject.path, why: world.semantics.explainSubject(policy, lane.subject) }
  }
  const isolates = policy.isolates ? `it isolates for ${lane.direction}, but ` : ''
  if (policy.rules.length === 0) return { path: policy.source.path, why: `${isolates}it has no ${lane.direction} rule` }
  const whys = policy.rules.map((rule) => `${describeRule(rule)}: ${explainRule(world, rule, { lane, at })}`)
  return { path: policy.rules[0]?.path ?? policy.source.path, why: `${isolates}no rule matches: ${whys.join('; ')}` }
}

function explainRule(world: PolicyWorld, { peers, ports }: PolicyRule, { lane, at }: Context): string {
  if (peers !== 'any' && peers.every((peer) => matchPeer(world, peer, lane.peer) === 'no')) {
    return explainPeers(world, peers, lane)
  }
  return explainPorts(world, ports === 'any' ? [] : ports, { lane, at })
}

/** Every one of them misses; the nearest miss is told. */
function explainPorts(world: PolicyWorld, ports: readonly PortMatch[], { lane, at }: Context): string {
  const named = lane.portNames
  const wanted = `it is for ${describePorts(ports)}`
  const lost = ports.find((port) => port.kind === 'named' && !named.some(({ name }) => name === port.name))
  if (lost?.kind === 'named') {
    const why = world.semantics.explainName?.(lost.name, lane.direction) ?? 'the destination has no port of that name'
    return `${wanted}, and ${why}`
  }
  const isOther = ports.every(({ protocol }) => protocol !== undefined && protocol !== at.protocol)
  if (isOther) return `${wanted}, and this is ${at.protocol}`
  const numbers = named.filter(({ name }) => ports.some((port) => port.kind === 'named' && port.name === name))
  const isOwn = lane.direction === 'ingress' || world.semantics.portNames === undefined
  const whose = isOwn ? ' of the destination' : ''
  const meant =
    numbers.length === 0 ? '' : ` (${listOf(numbers.map(({ protocol, port }) => `${protocol} ${port}`))}${whose})`
  return `${wanted}${meant}, and this is ${describePoint(at)}`
}

function explainPeers(world: PolicyWorld, peers: readonly PeerMatch[], { peer }: Lane): string {
  if (peers.length === 0) return 'it has no peer that could match'
  const whys = peers.map((one) => world.semantics.explainPeer(one, peer))
  return [...new Set(whys)].join(', and ')
}

/** Policies that hold for the subject and leave this direction alone. */
function silentOnes(world: PolicyWorld, spoken: ReadonlySet<string>, lane: Lane): readonly OtherPolicy[] {
  return world.policies
    .filter((policy) => !spoken.has(nameOf(policy)) && policy.direction !== lane.direction)
    .map(({ source }) => {
      const { object, origin, path } = source
      const hasTypes = object.kind === 'NetworkPolicy'
      return {
        object,
        origin,
        path: hasTypes ? 'spec.policyTypes' : path,
        why: hasTypes ? `its policyTypes leave ${lane.direction} out` : `it has no ${lane.direction} rules`,
      }
    })
}

function nameOf({ source: { object, path } }: CompiledPolicy): string {
  return `${object.kind} ${object.namespace ?? ''}/${object.name} ${path}`
}
