/** Data types of nftables: how nft 1.0.6 writes their values, and how many of them on a line of a named set. */
import type { Expression, Selector } from './expression'
import type { DataType } from './ruleset'
import { symbols } from './symbols'

export type ValueType = {
  readonly name: string
  /** Elements of a named set on one line. */
  readonly perLine: 1 | 2 | 5
  /** Numbers are hexadecimal, with at least so many digits. */
  readonly hexDigits?: number
  /** Names stand in quotes; of some types a text of digits is no name. */
  readonly quotes?: 'all' | 'names'
  readonly isBitmask?: boolean
  /** Seconds, written as `1h30m`. */
  readonly isDuration?: boolean
  readonly symbols?: Readonly<Record<string, number>>
}

type Traits = Omit<ValueType, 'name' | 'perLine' | 'symbols'>

function valueType(name: string, perLine: ValueType['perLine'] = 1, traits: Traits = {}): ValueType {
  const names = symbols[name]
  return { name, perLine, ...traits, ...(names === undefined ? {} : { symbols: names }) }
}

const integer = valueType('integer', 5)
/** Of what has no name: `@th,16,16`. */
const rawInteger = valueType('integer', 5, { hexDigits: 1 })

const knownTypes: readonly ValueType[] = [
  integer,
  valueType('ipv4_addr', 2),
  valueType('ether_type', 1, { hexDigits: 4 }),
  valueType('inet_proto', 5),
  valueType('inet_service', 5),
  valueType('mark', 5, { hexDigits: 8 }),
  valueType('ifname', 1, { quotes: 'all' }),
  valueType('string', 1, { quotes: 'all' }),
  valueType('iface_index', 5, { quotes: 'names' }),
  valueType('devgroup', 1, { quotes: 'names' }),
  valueType('realm', 1, { quotes: 'names' }),
  valueType('uid', 5),
  valueType('gid', 5),
  valueType('classid', 5),
  valueType('nf_proto', 5),
  valueType('arp_op', 5),
  valueType('dccp_pkttype', 5),
  valueType('pkt_type', 2),
  valueType('tcp_flag', 5, { hexDigits: 1, isBitmask: true }),
  valueType('ct_state', 2, { hexDigits: 1, isBitmask: true }),
  valueType('ct_status', 2, { hexDigits: 1, isBitmask: true }),
  valueType('ct_label', 1, { isBitmask: true }),
  valueType('ct_event', 1, { isBitmask: true }),
  valueType('ct_dir', 2),
  valueType('dscp', 1, { hexDigits: 2 }),
  valueType('ecn', 1, { hexDigits: 1 }),
  valueType('day', 1, { quotes: 'all' }),
  valueType('hour', 1, { quotes: 'all' }),
  valueType('time', 1, { quotes: 'all', isDuration: true }),
]

const byName = new Map(knownTypes.map((type) => [type.name, type]))

/** A type that is not known writes its values as they are. */
export function valueTypeOf(name: string): ValueType {
  const known = byName.get(name)
  if (known !== undefined) return known
  const made = valueType(name)
  byName.set(name, made)
  return made
}

const address: Fields = { saddr: 'ipv4_addr', daddr: 'ipv4_addr' }
const ports: Fields = { sport: 'inet_service', dport: 'inet_service' }

type Fields = Readonly<Record<string, string>>

/** Fields of headers that are not plain numbers. */
const payloadTypes: Readonly<Record<string, Fields>> = {
  ether: { saddr: 'ether_addr', daddr: 'ether_addr', type: 'ether_type' },
  vlan: { type: 'ether_type' },
  arp: {
    ptype: 'ether_type',
    operation: 'arp_op',
    'saddr ether': 'ether_addr',
    'daddr ether': 'ether_addr',
    'saddr ip': 'ipv4_addr',
    'daddr ip': 'ipv4_addr',
  },
  ip: { ...address, protocol: 'inet_proto', dscp: 'dscp', ecn: 'ecn' },
  ip6: { saddr: 'ipv6_addr', daddr: 'ipv6_addr', nexthdr: 'inet_proto', dscp: 'dscp', ecn: 'ecn' },
  icmp: { type: 'icmp_type', code: 'icmp_code' },
  icmpv6: { type: 'icmpv6_type', code: 'icmpv6_code', taddr: 'ipv6_addr', daddr: 'ipv6_addr' },
  igmp: { type: 'igmp_type', group: 'ipv4_addr' },
  tcp: { ...ports, flags: 'tcp_flag' },
  udp: ports,
  udplite: ports,
  sctp: ports,
  th: ports,
  dccp: { ...ports, type: 'dccp_pkttype' },
  ah: { nexthdr: 'inet_proto' },
  comp: { nexthdr: 'inet_proto' },
}

const metaTypes: Fields = {
  protocol: 'ether_type',
  nfproto: 'nf_proto',
  l4proto: 'inet_proto',
  priority: 'classid',
  mark: 'mark',
  iif: 'iface_index',
  oif: 'iface_index',
  sdif: 'iface_index',
  iifname: 'ifname',
  oifname: 'ifname',
  sdifname: 'ifname',
  ibrname: 'ifname',
  obrname: 'ifname',
  iifkind: 'ifname',
  oifkind: 'ifname',
  iiftype: 'iface_type',
  oiftype: 'iface_type',
  skuid: 'uid',
  skgid: 'gid',
  rtclassid: 'realm',
  pkttype: 'pkt_type',
  iifgroup: 'devgroup',
  oifgroup: 'devgroup',
  ipsec: 'boolean',
  secpath: 'boolean',
  time: 'time',
  day: 'day',
  hour: 'hour',
  ibrvproto: 'ether_type',
  secmark: 'string',
}

const ctTypes: Fields = {
  state: 'ct_state',
  direction: 'ct_dir',
  status: 'ct_status',
  mark: 'mark',
  expiration: 'time',
  helper: 'string',
  l3proto: 'nf_proto',
  protocol: 'inet_proto',
  label: 'ct_label',
  event: 'ct_event',
  'proto-src': 'inet_service',
  'proto-dst': 'inet_service',
  secmark: 'string',
}

const fibTypes: Fields = { oif: 'iface_index', oifname: 'ifname', type: 'fib_addrtype' }

/** The type of each part of a value: one, or as many as a concatenation has. */
export function typesOf(expression: Expression): readonly ValueType[] {
  switch (expression.kind) {
    case 'concat':
      return expression.parts.flatMap(typesOf)
    case 'binary':
      return typesOf(expression.left)
    case 'value':
    case 'wildcard':
    case 'list':
    case 'prefix':
    case 'range':
    case 'set':
    case 'reference':
    case 'map':
    case 'other':
      return [integer]
    case 'raw-payload':
      return [rawInteger]
    default:
      return [valueTypeOf(selectorType(expression))]
  }
}

type Named = Exclude<Selector, { readonly kind: 'raw-payload' }>

function selectorType(selector: Named): string {
  switch (selector.kind) {
    case 'payload':
      return payloadTypes[selector.protocol]?.[selector.field] ?? 'integer'
    case 'meta':
      return metaTypes[selector.key] ?? 'integer'
    case 'ct':
      return ctTypes[selector.key] ?? (/[sd]addr$/.test(selector.key) ? 'address' : 'integer')
    case 'rt':
      return { classid: 'realm', nexthop: 'address', ipsec: 'boolean' }[selector.key] ?? 'integer'
    case 'socket':
      return { mark: 'mark', cgroupv2: 'string' }[selector.key] ?? 'integer'
    case 'osf':
      return 'string'
    case 'fib':
      return fibTypes[selector.result] ?? 'integer'
    case 'exthdr':
      return (
        { nexthdr: 'inet_proto', type: selector.name === 'mh' ? 'mh_type' : 'integer' }[selector.field ?? ''] ??
        'integer'
      )
    case 'ipsec':
      return /addr$/.test(selector.key) ? 'address' : 'integer'
    case 'tcp-option':
    case 'raw-tcp-option':
    case 'ip-option':
    case 'sctp-chunk':
    case 'dccp-option':
    case 'numgen':
    case 'jhash':
    case 'symhash':
      return 'integer'
    default:
      return selector satisfies never
  }
}

/** Maps to objects hold their names. */
const objectTypes = new Set([
  'counter',
  'quota',
  'limit',
  'ct helper',
  'ct timeout',
  'ct expectation',
  'synproxy',
  'secmark',
])

/** The types of a named set's keys, or of a map's values. */
export function typesOfData(data: DataType): readonly ValueType[] {
  if (data.kind === 'typeof') return typesOf(data.expression)
  return data.names.map((name) => valueTypeOf(objectTypes.has(name) ? 'string' : name))
}
