/** Which data type a value has that is compared with an expression, or written into one; `''` is not known. */
import type { Expression, Selector } from './expression'
import type { DataType, NamedSet } from './ruleset'

const addressTypes = { ip: 'ipv4_addr', ip6: 'ipv6_addr' } as const

const ports = { sport: 'inet_service', dport: 'inet_service', checksum: '' }
const tunnelPorts = { length: '', csum: '' }

/** The fields of each header, and the type of those that have names or texts for values. */
export const payloadFields: ReadonlyMap<string, Readonly<Record<string, string>>> = new Map(
  Object.entries<Readonly<Record<string, string>>>({
    ether: { saddr: 'ether_addr', daddr: 'ether_addr', type: 'ether_type' },
    vlan: { id: '', cfi: '', dei: '', pcp: '', type: 'ether_type' },
    arp: {
      htype: '',
      ptype: 'ether_type',
      hlen: '',
      plen: '',
      operation: 'arp_op',
      'saddr ether': 'ether_addr',
      'daddr ether': 'ether_addr',
      'saddr ip': 'ipv4_addr',
      'daddr ip': 'ipv4_addr',
    },
    ip: {
      version: '',
      hdrlength: '',
      dscp: 'dscp',
      ecn: 'ecn',
      length: '',
      id: '',
      'frag-off': '',
      ttl: '',
      protocol: 'inet_proto',
      checksum: '',
      saddr: 'ipv4_addr',
      daddr: 'ipv4_addr',
    },
    ip6: {
      version: '',
      dscp: 'dscp',
      ecn: 'ecn',
      flowlabel: '',
      length: '',
      nexthdr: 'inet_proto',
      hoplimit: '',
      saddr: 'ipv6_addr',
      daddr: 'ipv6_addr',
    },
    icmp: { type: 'icmp_type', code: 'icmp_code', checksum: '', id: '', sequence: '', gateway: '', mtu: '' },
    icmpv6: {
      type: 'icmpv6_type',
      code: 'icmpv6_code',
      checksum: '',
      'parameter-problem': '',
      'packet-too-big': '',
      mtu: '',
      id: '',
      sequence: '',
      'max-delay': '',
      taddr: 'ipv6_addr',
      daddr: 'ipv6_addr',
    },
    igmp: { type: 'igmp_type', checksum: '', mrt: '', group: 'ipv4_addr' },
    tcp: {
      ...ports,
      sequence: '',
      ackseq: '',
      doff: '',
      reserved: '',
      flags: 'tcp_flag',
      window: '',
      urgptr: '',
    },
    udp: { ...ports, ...tunnelPorts },
    udplite: { ...ports, ...tunnelPorts, cscov: '' },
    sctp: { ...ports, vtag: '' },
    dccp: { ...ports, type: 'dccp_pkttype' },
    th: ports,
    ah: { nexthdr: 'inet_proto', hdrlength: '', reserved: '', spi: '', sequence: '' },
    esp: { spi: '', sequence: '' },
    comp: { nexthdr: 'inet_proto', flags: '', cpi: '' },
    gre: { version: '', flags: '', protocol: 'ether_type' },
  }),
)

export const extensionFields: ReadonlyMap<string, Readonly<Record<string, string>>> = new Map(
  Object.entries<Readonly<Record<string, string>>>({
    hbh: { nexthdr: 'inet_proto', hdrlength: '' },
    dst: { nexthdr: 'inet_proto', hdrlength: '' },
    rt: { nexthdr: 'inet_proto', hdrlength: '', type: '', 'seg-left': '' },
    rt0: { addr: 'ipv6_addr' },
    rt2: { addr: 'ipv6_addr' },
    srh: { 'last-entry': '', flags: '', tag: '', sid: 'ipv6_addr', 'seg-left': '' },
    frag: { nexthdr: 'inet_proto', reserved: '', 'frag-off': '', reserved2: '', 'more-fragments': '', id: '' },
    mh: { nexthdr: 'inet_proto', hdrlength: '', type: 'mh_type', reserved: '', checksum: '' },
  }),
)

/** By the name that nft's JSON has for the key. */
export const metaKeys: ReadonlyMap<string, string> = new Map(
  Object.entries({
    length: '',
    protocol: 'ether_type',
    nfproto: 'nf_proto',
    l4proto: 'inet_proto',
    priority: 'classid',
    mark: '',
    iif: 'iface_index',
    oif: 'iface_index',
    sdif: 'iface_index',
    iifname: 'ifname',
    oifname: 'ifname',
    sdifname: 'ifname',
    iifkind: 'ifname',
    oifkind: 'ifname',
    ibrname: 'ifname',
    obrname: 'ifname',
    iiftype: 'iface_type',
    oiftype: 'iface_type',
    skuid: 'uid',
    skgid: 'gid',
    nftrace: 'integer',
    rtclassid: 'realm',
    secmark: 'secmark',
    pkttype: 'pkt_type',
    cpu: 'integer',
    iifgroup: 'devgroup',
    oifgroup: 'devgroup',
    cgroup: 'integer',
    random: 'integer',
    ipsec: 'boolean',
    time: 'time',
    day: 'day',
    hour: 'hour',
    ibrpvid: 'integer',
    ibrvproto: 'ether_type',
    ibrhwaddr: 'ether_addr',
    broute: 'integer',
  }),
)

export const ctKeys: ReadonlyMap<string, string> = new Map(
  Object.entries({
    state: 'ct_state',
    direction: 'ct_dir',
    status: 'ct_status',
    mark: 'mark',
    secmark: 'secmark',
    expiration: 'duration',
    helper: 'string',
    l3proto: 'nf_proto',
    protocol: 'inet_proto',
    'proto-src': 'inet_service',
    'proto-dst': 'inet_service',
    saddr: '',
    daddr: '',
    label: 'ct_label',
    bytes: 'integer',
    packets: 'integer',
    avgpkt: 'integer',
    zone: 'integer',
    event: 'ct_event',
    id: 'integer',
  }),
)

const fibResults: Readonly<Record<string, string>> = { oif: 'iface_index', oifname: 'ifname', type: 'fib_addrtype' }

/** One type a part of a concatenation. */
export function datatypesOf(expression: Expression, sets: ReadonlyMap<string, NamedSet>): readonly string[] {
  switch (expression.kind) {
    case 'concat':
      return expression.parts.flatMap((part) => datatypesOf(part, sets))
    case 'binary':
      return datatypesOf(expression.left, sets)
    case 'map':
      return expression.data.kind === 'reference' ? dataTypesOf(sets.get(expression.data.set)?.data, sets) : ['']
    case 'value':
    case 'wildcard':
    case 'list':
    case 'prefix':
    case 'range':
    case 'set':
    case 'reference':
    case 'other':
      return ['']
    default:
      return [selectorType(expression)]
  }
}

/** The types of a set's keys or of a map's values. */
export function dataTypesOf(type: DataType | undefined, sets: ReadonlyMap<string, NamedSet>): readonly string[] {
  if (type === undefined) return ['']
  return type.kind === 'type' ? type.names : datatypesOf(type.expression, sets)
}

function selectorType(selector: Selector): string {
  switch (selector.kind) {
    case 'payload':
      return payloadFields.get(selector.protocol)?.[selector.field] ?? ''
    case 'exthdr':
      return selector.field === undefined ? 'boolean' : (extensionFields.get(selector.name)?.[selector.field] ?? '')
    case 'tcp-option':
    case 'ip-option':
    case 'sctp-chunk':
      return selector.field === undefined ? 'boolean' : selector.field === 'addr' ? 'ipv4_addr' : 'integer'
    case 'dccp-option':
      return 'boolean'
    case 'meta':
      return metaKeys.get(selector.key) ?? ''
    case 'ct':
      return addressType(selector) ?? ctKeys.get(selector.key) ?? ''
    case 'rt':
      return addressType(selector) ?? { classid: 'realm', mtu: 'integer', ipsec: 'boolean' }[selector.key] ?? ''
    case 'ipsec':
      return addressType(selector) ?? 'integer'
    case 'fib':
      return fibResults[selector.result] ?? 'boolean'
    case 'osf':
      return 'string'
    case 'socket':
      return selector.key === 'cgroupv2' ? 'cgroupsv2' : 'integer'
    case 'raw-payload':
    case 'raw-tcp-option':
    case 'numgen':
    case 'jhash':
    case 'symhash':
      return 'integer'
    default:
      return selector satisfies never
  }
}

function addressType(selector: { readonly family?: 'ip' | 'ip6' }): string | undefined {
  return selector.family === undefined ? undefined : addressTypes[selector.family]
}
