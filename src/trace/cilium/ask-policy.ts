/** Policy at one end: the look-ups in the endpoint's map, and what the version makes of what they find. Mirrors bpf/lib/policy.h, Cilium 1.16 to 1.19. */

import { printRef } from '#base/finding'
import { listOf } from '#base/text'
import { policyKeyText, policySource, policyValueText, portText } from '#compile/cilium/dump-policy-maps'
import { policyMapName } from '#compile/cilium/map-layouts'
import type { LocalEndpoint } from '#compile/cilium/node-world'
import { type PolicyMapRow, policyEndpoint } from '#compile/cilium/render-policy-maps'
import { openRulesOf } from '#compile/policy/cilium-endpoint-map'
import type { PolicyEntry, PolicyKey } from '#compile/policy/cilium-policy-entry'
import { lookUpPolicy, type PolicyLookup, packetKey } from '#compile/policy/cilium-policy-lookup'
import { buildPolicyMap } from '#compile/policy/cilium-policy-map'
import type { OpenRule } from '#compile/policy/open-rules'
import { type CiliumVersion, isAtLeast } from '#model/cilium-version'
import type { Reason } from '#model/trace'
import type { MapLookup, WalkPlace } from '#model/walk'
import { icmpCodeOf, numbers } from './flow-packet'
import { type NodeTables, type PolicyTable, placeOf } from './node-tables'
import { type Blame, type Draft, drop, type Ending, endpointName, endpointObject, tell, unknown } from './walk-draft'

export type PolicyQuestion = {
  readonly endpoint: LocalEndpoint
  readonly direction: 'ingress' | 'egress'
  readonly identity: number
}

/** `proxyPort` 0 goes on; `ending` ends here. */
export type PolicyFate = { readonly proxyPort: number; readonly parser?: string } | { readonly ending: Ending }

export function askPolicy(draft: Draft, node: NodeTables, at: WalkPlace, question: PolicyQuestion): PolicyFate {
  const { endpoint, direction, identity } = question
  const { settings } = node.maps
  const { packet } = draft
  if (isTunnelled(draft, node, question)) {
    const sentence = `pods may not send UDP to port ${packet.port}, which is the tunnel’s`
    return { ending: drop(draft, at, 170, { sentence, ...endpointObject(endpoint) }) }
  }
  const table = node.policy(endpoint.id)
  if (table === undefined) {
    return { ending: unknown(draft, at, 'cilium.no-policy-map', `${endpointName(endpoint)} has no policy map`) }
  }
  if (isFragmentationNeeded(draft, settings.policy.allowsFragmentationNeeded)) {
    const why = 'fragmentation needed always passes, and no entry is looked up (allow-icmp-frag-needed)'
    tell(draft, at, [`asked ${direction} policy: allowed`, why])
    return { proxyPort: 0 }
  }
  const port = packet.icmpType ?? packet.port
  const key = packetKey({ direction, identity, protocol: numbers[packet.protocol], port })
  const lookup = lookUpPolicy(table.map, key)
  const { version } = settings.policy
  const lookups = lookupsOf(table, lookup, {
    version,
    name: policyMapName(version, endpoint.id),
    question,
    port: portText(key, version),
  })
  const who = `${draft.net.identityName(identity)} (identity ${identity})`
  const fate = judge(lookup, settings.policy.isAuthenticated)
  const doubt = settings.policy.isAudit ? undefined : doubtOf(node, question, { table, key, fate })
  if (doubt !== undefined) {
    tell(draft, at, [`asked ${direction} policy`, whatWasFound(lookup, version)], { lookups })
    return { ending: unknown(draft, at, 'cilium.open-rule', doubt) }
  }
  if (fate === 'allow' && lookup !== undefined) {
    const row = table.rows.get(lookup.chosen)
    const parser = lookup.chosen.redirect?.parser
    tell(draft, at, [`asked ${direction} policy: allowed`, whyAllowed(lookup, { who, direction, version })], {
      lookups,
    })
    return { proxyPort: row?.proxyPort ?? 0, ...(parser !== undefined && { parser }) }
  }
  if (settings.policy.isAudit) {
    const what = `policy would drop it; policy-audit-mode lets it pass with verdict AUDIT`
    tell(draft, at, [`asked ${direction} policy: audit`, what], { lookups })
    return { proxyPort: 0 }
  }
  tell(draft, at, [`asked ${direction} policy`, whatWasFound(lookup, version)], { lookups })
  return { ending: refuse(draft, at, { fate, lookup, table, question, who }) }
}

function isTunnelled({ packet, net }: Draft, { maps }: NodeTables, { direction, endpoint }: PolicyQuestion): boolean {
  if (direction !== 'egress' || packet.protocol !== 'UDP' || endpoint.kind === 'host') return false
  return maps.settings.isTunnel && packet.port === net.path.tunnelPort
}

function isFragmentationNeeded({ packet }: Draft, isAllowed: boolean): boolean {
  return isAllowed && packet.protocol === 'ICMP' && packet.icmpType === 3 && icmpCodeOf(packet) === 4
}

type Fate = 'allow' | 'none' | 'deny' | 'auth' | 'perhaps'

function judge(lookup: PolicyLookup | undefined, isAuthenticated: boolean | undefined): Fate {
  if (lookup === undefined) return 'none'
  if (lookup.chosen.isDeny) return 'deny'
  if (lookup.authType === 0 || (lookup.authType === 1 && isAuthenticated === true)) return 'allow'
  return lookup.authType === 1 && isAuthenticated === undefined ? 'perhaps' : 'auth'
}

type Judged = { readonly table: PolicyTable; readonly key: PolicyKey; readonly fate: Fate }

/** Rules that may match, alone or together, and would have it otherwise. */
function doubtOf(
  { maps: { world, settings } }: NodeTables,
  { endpoint, direction, identity }: PolicyQuestion,
  { table, key, fate }: Judged,
): string | undefined {
  const open = openRulesOf(world.maker, policyEndpoint(world, endpoint), { direction, identity })
  if (open.length === 0) return undefined
  const { version, isAuthenticated } = settings.policy
  const fateWith = (rules: readonly OpenRule[]): Fate => {
    const added = rules.flatMap(({ entries }) => entries)
    return judge(lookUpPolicy(buildPolicyMap([...table.map.entries, ...added], version), key), isAuthenticated)
  }
  const decisive = [...open.map((one) => [one]), open].find((rules) => fateWith(rules) !== fate)?.[0]
  if (decisive === undefined) return undefined
  const { wanted, why } = decisive
  return `${printRef(wanted.policy.source.object)} ${wanted.rule.path} decides here: ${why}`
}

type Refusal = {
  readonly fate: Fate
  readonly lookup: PolicyLookup | undefined
  readonly table: PolicyTable
  readonly question: PolicyQuestion
  readonly who: string
}

function refuse(draft: Draft, at: WalkPlace, { fate, lookup, table, question, who }: Refusal): Ending {
  const { endpoint, direction } = question
  const { packet } = draft
  const port = packet.icmpType === undefined ? `port ${packet.port}` : `type ${packet.icmpType}`
  const what = `${packet.protocol} ${port} ${direction === 'ingress' ? 'from' : 'to'} ${who}`
  const end = endpointName(endpoint)
  if (fate === 'deny' && lookup !== undefined) {
    return drop(draft, at, 181, { sentence: `a rule denies ${what} at ${end}`, ...blameOf(lookup.chosen, endpoint) })
  }
  if (fate === 'auth' && lookup !== undefined) {
    const sentence = `${end} takes ${what} from authenticated peers alone, and cilium_auth_map has no row for it`
    return drop(draft, at, 189, { sentence, ...blameOf(lookup.chosen, endpoint) })
  }
  if (fate === 'perhaps' && lookup !== undefined) {
    const sentence = `${end} asks for mutual authentication of ${what}: dropped with 189 until both ends have authenticated, which no object tells`
    return unknown(draft, at, 'cilium.authenticates', sentence)
  }
  const sentence = `no ${direction} rule of ${end} allows ${what}`
  return drop(draft, at, 133, { sentence, ...endpointObject(endpoint), more: othersOf(table, direction) })
}

function blameOf({ origins }: PolicyEntry, endpoint: LocalEndpoint): Omit<Blame, 'sentence'> {
  const [first] = origins
  if (first === undefined) return endpointObject(endpoint)
  return { object: first.source.object, origin: first.source.origin, rule: first.rule.path }
}

/** What the direction lets pass instead. */
function othersOf({ of }: PolicyTable, direction: 'ingress' | 'egress'): readonly Reason[] {
  const objects = new Map<string, Reason>()
  for (const { entry } of of.rows) {
    if (entry.key.direction !== direction) continue
    for (const { source } of entry.origins) {
      const name = printRef(source.object)
      const sentence = 'a policy selects it, and allows others'
      if (!objects.has(name)) {
        objects.set(name, { code: 'cilium.policy', sentence, object: source.object, origin: source.origin })
      }
    }
  }
  return [...objects.values()].slice(0, 5)
}

function whatWasFound(lookup: PolicyLookup | undefined, version: CiliumVersion): string {
  if (lookup === undefined) return 'no entry matches'
  const own = entryText(lookup.chosen, version)
  return lookup.other === undefined ? `${own} decides` : `${own} wins over ${entryText(lookup.other, version)}`
}

function entryText(entry: PolicyEntry, version: CiliumVersion): string {
  return `${entry.isDeny ? 'Deny' : 'Allow'} ${policyKeyText(entry.key, version)}`
}

type Asked = { readonly who: string; readonly direction: 'ingress' | 'egress'; readonly version: CiliumVersion }

function whyAllowed({ chosen, other }: PolicyLookup, { who, direction, version }: Asked): string {
  const { origins, note, redirect } = chosen
  const rules = origins.map(({ source, rule }) => `${printRef(source.object)} ${rule.path}`)
  const why = rules.length > 0 ? `${listOf(rules, 3)} allows it` : (note ?? 'nothing restricts this direction')
  const then = redirect === undefined ? '' : `, by way of the ${redirect.parser} proxy`
  const over = other === undefined ? '' : `; it wins over ${entryText(other, version)}`
  return `${direction === 'ingress' ? 'from' : 'to'} ${who}: ${why}${then}${over}`
}

type LookupTexts = {
  readonly version: CiliumVersion
  readonly name: string
  readonly question: PolicyQuestion
  readonly port: string
}

/** For the identity and for any, as the datapath asks. */
function lookupsOf(
  { rows }: PolicyTable,
  lookup: PolicyLookup | undefined,
  { version, name, question, port }: LookupTexts,
): readonly MapLookup[] {
  const { identity, direction } = question
  const found = lookup === undefined ? [] : [lookup.chosen, ...(lookup.other === undefined ? [] : [lookup.other])]
  const both = [identity, 0].map((number): MapLookup => {
    const key = `${direction === 'ingress' ? 'Ingress' : 'Egress'}: ${number} ${port}`
    const row = found.map((entry) => rows.get(entry)).find((one) => one?.entry.key.identity === number)
    return row === undefined
      ? { map: name, key }
      : { map: name, key, value: rowText(row, version), ...placeOf(policySource(row.entry)) }
  })
  // Until 1.16 the first of six steps that finds something decides, and later ones are not made.
  return isAtLeast(version, '1.17') || both.some(({ value }) => value !== undefined) === false
    ? both
    : both.filter(({ value }) => value !== undefined)
}

function rowText(row: PolicyMapRow, version: CiliumVersion): string {
  return `${policyKeyText(row.entry.key, version)} ${policyValueText(row, version)}`
}
