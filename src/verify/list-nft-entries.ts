/** The destinations that nftables rules translate or refuse: kube-proxy's maps, and rules that name an address and a port. */
import { type Family, parseIp, printIp } from '#base/ip'
import type { Element, Expression } from '#compile/nftables/expression'
import type { Chain, NamedSet, Table } from '#compile/nftables/ruleset'
import type { Rule, Statement } from '#compile/nftables/statement'
import { type Entries, type Entry, type HiddenRule, nameOfRule } from './survey-entry'
import { type Jump, type Reach, reachOf } from './survey-reach'

export function listNftEntries(table: Table): Entries {
  if (table.family !== 'ip' && table.family !== 'ip6' && table.family !== 'inet') return { entries: [], hidden: [] }
  if (table.name === 'kube-proxy') return { entries: proxyMaps.flatMap((map) => entriesOfMap(table, map)), hidden: [] }
  const entries: Entry[] = []
  const hidden: HiddenRule[] = []
  for (const [name, reach] of reachOf({ roots: rootsOf(table), jumpsOf: (from) => jumpsOf(table.chains.get(from)) })) {
    for (const rule of table.chains.get(name)?.rules ?? []) {
      const found = entriesOfRule(table, { chain: name, reach, rule })
      entries.push(...found.entries)
      hidden.push(...found.hidden)
    }
  }
  return { entries, hidden }
}

/** kube-proxy 1.31 to 1.36, nftables/proxier.go: keys are address, protocol and port; those of node ports have no address. */
const proxyMaps = [
  { name: 'service-ips', isTranslation: true },
  { name: 'no-endpoint-services', isTranslation: false },
  { name: 'service-nodeports', isTranslation: true },
  { name: 'no-endpoint-nodeports', isTranslation: false },
] as const

function entriesOfMap(table: Table, map: (typeof proxyMaps)[number]): readonly Entry[] {
  const set: NamedSet | undefined = table.sets.get(map.name)
  const own = familyOf(table)
  const node = nodePortAddress(table)
  return (set?.elements ?? []).flatMap((element) => {
    const parts = element.key.kind === 'concat' ? element.key.parts.map(constantOf) : []
    const [port, protocol, address] = parts.reverse()
    if (!isPortProtocol(protocol) || typeof port !== 'number') return []
    const at: Entry['at'] = typeof address === 'string' ? { kind: 'address', text: address } : node
    const family = typeof address === 'string' && address.includes(':') ? 'ipv6' : own
    const name = element.comment ?? nameOfChain(element, map.name)
    return [{ name, at, family, port, protocol, isTranslation: map.isTranslation }]
  })
}

/** kube-proxy lists the addresses that take node ports, which are the node's own, unless all of them do. */
function nodePortAddress(table: Table): Extract<Entry['at'], { readonly kind: 'node' }> {
  const [first] = table.sets.get('nodeport-ips')?.elements ?? []
  const text = first === undefined ? undefined : constantOf(first.key)
  return typeof text === 'string' ? { kind: 'node', text } : { kind: 'node' }
}

/** `service-KHN6ECMT-shop/web/tcp/http` is of shop/web:http. */
function nameOfChain({ data }: Element, map: string): string {
  const target = data?.kind === 'goto' || data?.kind === 'jump' ? data.target : ''
  const match = /^[a-z]+-[A-Z0-9]+-([^/]+\/[^/]+)\/[^/]+\/([^/]*)$/.exec(target)
  if (match === null) return `(${map})`
  return match[2] === '' ? String(match[1]) : `${match[1]}:${match[2]}`
}

function familyOf(table: Table): Family {
  return table.family === 'ip6' ? 'ipv6' : 'ipv4'
}

function isPortProtocol(value: unknown): value is Entry['protocol'] {
  return value === 'tcp' || value === 'udp' || value === 'sctp'
}

function constantOf(expression: Expression): string | number | boolean | undefined {
  return expression.kind === 'value' ? expression.value : undefined
}

function rootsOf(table: Table): ReadonlyMap<string, Reach> {
  const roots = new Map<string, Reach>()
  for (const { name, base } of table.chains.values()) {
    if (base === undefined || base.hook === 'postrouting') continue
    roots.set(name, base.hook === 'input' ? 'local' : 'any')
  }
  return roots
}

function jumpsOf(chain: Chain | undefined): readonly Jump[] {
  return (chain?.rules ?? []).flatMap(({ statements }) => {
    const last = statements.at(-1)
    if (last?.kind !== 'jump' && last?.kind !== 'goto') return []
    const asked = askedOf(statements)
    const isNarrow = asked.address !== undefined || asked.why !== undefined
    return [{ target: last.target, reach: isNarrow ? 'some' : asked.isLocal ? 'local' : 'any' }]
  })
}

type Met = { readonly chain: string; readonly reach: Reach; readonly rule: Rule }

function entriesOfRule(table: Table, { chain, reach, rule }: Met): Entries {
  const { statements, line } = rule
  const last = statements.find(
    ({ kind }) => kind === 'dnat' || kind === 'redirect' || kind === 'drop' || kind === 'reject',
  )
  if (last === undefined) return { entries: [], hidden: [] }
  const { address, why, isLocal, protocol, ports } = askedOf(statements)
  const plain = protocol === undefined ? [] : ports
  const doubt = why ?? (plain.length === 0 ? 'no port' : undefined)
  const isElsewhere = address === undefined && reach === 'some'
  if (doubt !== undefined || protocol === undefined || isElsewhere) {
    return { entries: [], hidden: [{ why: doubt ?? 'the destinations of a chain', line }] }
  }
  const at: Entry['at'] =
    address !== undefined ? { kind: 'address', text: address } : { kind: isLocal || reach === 'local' ? 'node' : 'any' }
  const family = address?.includes(':') === true ? 'ipv6' : familyOf(table)
  const isTranslation = last.kind === 'dnat' || last.kind === 'redirect'
  const name = nameOfRule(rule.comment, chain)
  return { entries: plain.map((port) => ({ name, at, family, port, protocol, isTranslation })), hidden: [] }
}

type Asked = {
  address?: string
  protocol?: Entry['protocol']
  ports: readonly number[]
  isLocal: boolean
  /** Why there is no single place to show. */
  why?: string
}

function askedOf(statements: readonly Statement[]): Asked {
  const asked: Asked = { ports: [], isLocal: false }
  for (const statement of statements) if (statement.kind === 'match') takeMatch(asked, statement)
  return asked
}

function takeMatch(asked: Asked, { operator, left, right }: Extract<Statement, { readonly kind: 'match' }>): void {
  if (left.kind === 'fib' && left.result === 'type' && constantOf(right) === 'local') asked.isLocal = operator === '=='
  else if (left.kind === 'meta' && left.key === 'l4proto') takeProtocol(asked, constantOf(right))
  else if (left.kind === 'concat') asked.why ??= 'a look-up of several fields'
  else if (left.kind !== 'payload') return
  else if (left.field === 'daddr') {
    const ip = operator === '==' ? parseIp(String(constantOf(right) ?? '')) : undefined
    if (ip === undefined) asked.why ??= operator === '!=' ? 'all addresses but some' : 'a range of addresses'
    else asked.address = printIp(ip)
  } else if (left.field === 'dport') {
    takeProtocol(asked, left.protocol)
    const ports = operator === '==' ? portsOf(right) : undefined
    if (ports === undefined) asked.why ??= operator === '!=' ? 'all ports but some' : 'a range of ports'
    else asked.ports = ports
  } else if (left.field === 'protocol' || left.field === 'nexthdr') takeProtocol(asked, constantOf(right))
}

function takeProtocol(asked: Asked, value: unknown): void {
  if (isPortProtocol(value)) asked.protocol = value
}

function portsOf(right: Expression): readonly number[] | undefined {
  const items = right.kind === 'set' ? right.elements.map((element) => element.key) : [right]
  const ports = items.map(constantOf).filter((value) => typeof value === 'number')
  return ports.length === items.length ? ports : undefined
}
