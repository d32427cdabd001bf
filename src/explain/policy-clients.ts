/** Who may reach the backends of a Service under the policies of the input: pods by workload, and addresses outside. */
import { compareIp, type Family, type Ip, parseIp, printIp } from '#base/ip'
import type { Direction } from '#compile/policy/policy-rule'
import { keyOf } from '#model/meta'
import type { AddressRange } from '#trace/policy/address-atoms'
import type { Decision, PolicyReason } from '#trace/policy/answer'
import { judgeDirection } from '#trace/policy/judge-direction'
import type { Party, PartyClass } from '#trace/policy/party'
import { familiesOf, hasEnded, nearnessOf } from '#trace/policy/party-facts'
import { classOf, type PolicyWorld } from '#trace/policy/world'
import { ownerOf } from '#verify/policy/pod-owner'
import type { ServiceRoute } from '#verify/policy/service-rows'

/** `name` is the workload, or the range of addresses. */
export type Client = { readonly name: string; readonly party: Party }

export type Reach = 'all' | 'some' | 'none' | 'unknown'

/** The first reason of the side that decides; for a client that reaches all, of the side that lets it in. */
export type ClientAnswer = {
  readonly client: Client
  readonly reach: Reach
  readonly direction: Direction
  readonly reason: PolicyReason
  readonly changes: readonly string[]
}

/** One client for each workload and set of labels; pods that have ended are none. */
export function findClients(world: PolicyWorld, families: readonly Family[]): readonly Client[] {
  const found = new Map<string, Client>()
  for (const pod of world.cluster.pods.values()) {
    if (hasEnded(pod)) continue
    const party: Party = { kind: 'pod', pod }
    const { kind, namespace, name } = ownerOf(world.cluster, pod)
    const label = kind === 'Pod' ? `${namespace}/${name}` : `${namespace}/${name} (${kind})`
    const key = `${label} ${classOf(world, party).id}`
    if (!found.has(key)) found.set(key, { name: label, party })
  }
  return [...found.values(), ...families.flatMap((family) => outsideClients(world, family))]
}

/** One address of each range that policies tell apart; ranges of pods and nodes are told with these. */
function outsideClients(world: PolicyWorld, family: Family): readonly Client[] {
  const { atoms } = world.atoms[family]
  return atoms.map(({ from, to }): Client => {
    const [first, last] = [printIp(from), printIp(to)]
    const name = atoms.length === 1 ? 'addresses outside' : first === last ? first : `${first}–${last}`
    return { name, party: { kind: 'address', ip: sampleOf({ from, to }) } }
  })
}

/** An address of documentation where it lies in the range: the first of a range looks like a slip. */
const documented = ['203.0.113.1', '2001:db8::1']

function sampleOf({ from, to }: AddressRange): Ip {
  const sample = documented
    .flatMap((text) => parseIp(text) ?? [])
    .find((ip) => ip.family === from.family && compareIp(from, ip) <= 0 && compareIp(ip, to) <= 0)
  return sample ?? from
}

export function askClient(
  world: PolicyWorld,
  client: Client,
  { protocol, backends }: ServiceRoute,
): ClientAnswer | undefined {
  const asked = backends.filter(
    ({ party, family }) => !isSame(client.party, party) && hasFamily(world, client.party, family),
  )
  const answers = asked.map(({ party, port, family }) =>
    askBackend(world, client.party, party, { protocol, port, family }),
  )
  const [first] = answers
  if (first === undefined) return undefined
  const told = answers.find(({ decision }) => decision !== 'allowed') ?? first
  return { client, reach: reachOf(answers.map(({ decision }) => decision)), ...told }
}

/** A client without any address may get one of either family. */
function hasFamily({ cluster }: PolicyWorld, client: Party, family: Family): boolean {
  const families = familiesOf(cluster, client)
  return families.length === 0 || families.includes(family)
}

function isSame(client: Party, backend: Party): boolean {
  return client.kind === 'pod' && backend.kind === 'pod' && keyOf(client.pod.meta) === keyOf(backend.pod.meta)
}

function reachOf(decisions: readonly Decision[]): Reach {
  const seen = new Set(decisions)
  if (seen.has('unknown')) return 'unknown'
  if (seen.size > 1) return 'some'
  return seen.has('allowed') ? 'all' : 'none'
}

type BackendAnswer = Pick<ClientAnswer, 'direction' | 'reason' | 'changes'> & { readonly decision: Decision }
type At = { readonly protocol: ServiceRoute['protocol']; readonly port: number; readonly family: Family }

function askBackend(world: PolicyWorld, source: Party, target: Party, { family, ...at }: At): BackendAnswer {
  const nearness = nearnessOf(source, target)
  const from: PartyClass = { ...classOf(world, source, family), party: source }
  const to: PartyClass = { ...classOf(world, target, family), party: target }
  const ingress = judgeDirection(world, 'ingress', { ends: { subject: to, peer: from, nearness }, at }).judgement
  const egress = judgeDirection(world, 'egress', { ends: { subject: from, peer: to, nearness }, at }).judgement
  const direction = decides(ingress.decision, egress.decision)
  const { decision, because, changes } = direction === 'ingress' ? ingress : egress
  return { direction, decision, reason: because.at(-1) ?? because[0], changes }
}

/** What one side denies is denied, and then what one side leaves open is open. */
function decides(ingress: Decision, egress: Decision): Direction {
  if (ingress === 'denied' || egress === 'allowed') return 'ingress'
  return egress === 'denied' || ingress === 'allowed' ? 'egress' : 'ingress'
}
