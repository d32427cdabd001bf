/** The destinations that the nat and filter tables of iptables translate or refuse. */
import { printIp } from '#base/ip'
import { parsePort } from '#base/port-range'
import { commentOf, type Rule, type Ruleset, type Table } from '#compile/iptables/rule'
import { targetOf } from '#compile/iptables/saved-rule'
import { parseMaskedAddress } from '#trace/masked-address'
import { type Entries, type Entry, type HiddenRule, nameOfRule } from './survey-entry'
import { type Jump, type Reach, reachOf } from './survey-reach'

export function listEntries(ruleset: Ruleset): Entries {
  const entries: Entry[] = []
  const hidden: HiddenRule[] = []
  for (const name of ['nat', 'filter']) {
    const table = ruleset.tables.get(name)
    if (table === undefined) continue
    const site = { ruleset, table }
    for (const [chain, reach] of reachOf({ roots: rootsOf(table), jumpsOf: (from) => jumpsOf(site, from) })) {
      for (const rule of table.chains.get(chain)?.rules ?? []) {
        const found = entriesOfRule(site, { chain, reach, rule })
        entries.push(...found.entries)
        hidden.push(...found.hidden)
      }
    }
  }
  return { entries, hidden }
}

type Site = { readonly ruleset: Ruleset; readonly table: Table }

/** INPUT sees what is for the node itself; POSTROUTING changes no destination. */
function rootsOf(table: Table): ReadonlyMap<string, Reach> {
  const roots = new Map<string, Reach>()
  for (const chain of table.chains.values()) {
    if (chain.policy === undefined || chain.name === 'POSTROUTING') continue
    roots.set(chain.name, chain.name === 'INPUT' ? 'local' : 'any')
  }
  return roots
}

function jumpsOf({ table }: Site, from: string): readonly Jump[] {
  const jumps: Jump[] = []
  for (const rule of table.chains.get(from)?.rules ?? []) {
    const target = targetOf(rule)
    if (target === undefined || !table.chains.has(target)) continue
    const asked = askedOf(rule)
    const isShown = asked.kind === 'place' && asked.ports.length > 0 && table.name === 'nat'
    const isRange = asked.kind === 'other' && asked.isAddress
    const isAddress = asked.kind === 'place' && asked.address !== undefined
    const reach = isShown ? 'shown' : isRange || isAddress ? 'some' : asked.isLocal ? 'local' : 'any'
    jumps.push({ target, reach })
  }
  return jumps
}

const refusing = new Set(['DROP', 'REJECT'])
const translating = new Set(['DNAT', 'REDIRECT', 'NETMAP', 'TPROXY'])

type Met = { readonly chain: string; readonly reach: Reach; readonly rule: Rule }

function entriesOfRule({ ruleset, table }: Site, { chain, reach, rule }: Met): Entries {
  const target = targetOf(rule)
  if (target === undefined || reach === 'shown') return none
  const isOwn = translating.has(target) || refusing.has(target)
  const isJump = table.name === 'nat' && table.chains.has(target)
  if (!isOwn && !isJump) return none
  const asked = askedOf(rule)
  const isPlain = asked.kind === 'place' && asked.ports.length > 0
  if (!isPlain || (reach === 'some' && asked.address === undefined)) {
    const isPlumbing = !isOwn || (table.name === 'filter' && chain.startsWith('KUBE-'))
    if (isPlumbing) return none
    const why = isPlain ? 'the destinations of a chain' : asked.kind === 'other' ? asked.why : 'no port'
    return { entries: [], hidden: [{ why, line: rule.line }] }
  }
  const { address, isLocal, protocol, ports } = asked
  const at: Entry['at'] =
    address !== undefined ? { kind: 'address', text: address } : { kind: isLocal || reach === 'local' ? 'node' : 'any' }
  const name = nameOfRule(commentOf(rule), chain)
  const common = { name, at, family: ruleset.family, protocol, isTranslation: !refusing.has(target) }
  return { entries: ports.map((port) => ({ ...common, port })), hidden: [] }
}

const none: Entries = { entries: [], hidden: [] }

/** What a rule asks of the destination: one place, with exact ports or none, or something that is not one place. */
type Asked = { readonly isLocal: boolean } & (
  | {
      readonly kind: 'place'
      readonly address: string | undefined
      readonly protocol: Entry['protocol']
      readonly ports: readonly number[]
    }
  | { readonly kind: 'other'; readonly why: string; readonly isAddress: boolean }
)

function askedOf(rule: Rule): Asked {
  const isLocal = asksLocal(rule)
  const other = (why: string, isAddress: boolean): Asked => ({ kind: 'other', isLocal, why, isAddress })
  const destination = rule.clauses.find((clause) => clause.kind === 'destination')
  if (destination?.kind === 'destination' && destination.not) return other('all addresses but some', true)
  const address = destination?.kind === 'destination' ? exactAddress(destination.value) : undefined
  if (destination !== undefined && address === undefined) return other('a range of addresses', true)
  if (asksSet(rule)) return other('the members of a set', true)
  const protocol = rule.clauses.find((clause) => clause.kind === 'protocol')
  const ports = portsOf(rule)
  if (typeof ports === 'string') return other(ports, address !== undefined)
  if (ports.length === 0) return other('no port', address !== undefined)
  if (protocol?.kind !== 'protocol' || protocol.not || !isPortProtocol(protocol.value)) {
    return other('no protocol that has ports', address !== undefined)
  }
  return { kind: 'place', isLocal, address, protocol: protocol.value, ports }
}

function asksLocal(rule: Rule): boolean {
  return rule.clauses.some(
    (clause) =>
      clause.kind === 'match' &&
      clause.name === 'addrtype' &&
      clause.options.some(({ flag, not, values }) => flag === '--dst-type' && !not && values[0] === 'LOCAL'),
  )
}

function asksSet(rule: Rule): boolean {
  return rule.clauses.some(
    (clause) =>
      clause.kind === 'match' &&
      clause.name === 'set' &&
      clause.options.some(({ flag, values }) => flag === '--match-set' && (values[1] ?? '').includes('dst')),
  )
}

function isPortProtocol(text: string): text is Entry['protocol'] {
  return text === 'tcp' || text === 'udp' || text === 'sctp'
}

function exactAddress(text: string): string | undefined {
  const prefix = parseMaskedAddress(text)?.prefix
  const isHost = prefix !== undefined && prefix.length === (prefix.ip.family === 'ipv4' ? 32 : 128)
  return isHost ? printIp(prefix.ip) : undefined
}

/** The single ports of `--dport` and `--dports`, or why there are none to show. */
function portsOf(rule: Rule): readonly number[] | string {
  for (const clause of rule.clauses) {
    if (clause.kind !== 'match') continue
    const option = clause.options.find(({ flag }) => flag === '--dport' || flag === '--dports' || flag === '--ports')
    if (option === undefined) continue
    if (option.not) return 'all ports but some'
    const ports = (option.values[0] ?? '').split(',').map(parsePort)
    const single = ports.filter((port) => port !== undefined)
    return single.length < ports.length ? 'a range of ports' : single
  }
  return []
}
