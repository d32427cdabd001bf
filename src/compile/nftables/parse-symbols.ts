/** The numbers behind names, a table a data type, for listings with `-n`, `-S` and older words. */
import { serviceNames } from './parse-services'
import { symbols } from './symbols'

type SymbolTable = {
  readonly numbers: ReadonlyMap<string, number>
  /** The first of several names of a number. */
  readonly names: ReadonlyMap<number, string>
}

/** `name=number …`; a name without a number has one more than the one before. */
function numbersOf(text: string): Readonly<Record<string, number>> {
  const numbers: Record<string, number> = {}
  let number = -1
  for (const entry of text.trim().split(/\s+/)) {
    const [name = '', value] = entry.split('=')
    number = value === undefined ? number + 1 : Number(value)
    numbers[name] = number
  }
  return numbers
}

/** Of types that nft prints by number, or by names that are the machine's own. */
const furtherNames: Readonly<Record<string, string>> = {
  iface_type: 'ether=1 ppp=0x200 ipip=0x300 ipip6 loopback=0x304 sit=0x308 ipgre=0x30a',
  igmp_type: `membership-query=17 membership-report-v1 membership-report-v2=22 leave-group membership-report-v3=34`,
  dccp_pkttype: 'request=0 response data ack dataack closereq close reset sync syncack',
  mh_type: `binding-refresh-request=0 home-test-init careof-test-init home-test careof-test binding-update
    binding-acknowledgement binding-error fast-binding-update fast-binding-acknowledgement
    fast-binding-advertisement experimental-mobility-header home-agent-switch-message`,
  ct_event: `new=1 related=2 destroy=4 reply=8 assured=16 protoinfo=32 helper=64 mark=128 seqadj=256 secmark=512
    label=1024`,
  devgroup: 'default=0',
  inet_service: serviceNames,
}

/** Second names. */
const aliases: Readonly<Record<string, string>> = {
  inet_proto: 'icmpv6=58 comp=108 mh=135 ospfigp=89',
  pkt_type: 'unicast=0',
  ether_type: 'vlan=0x8100',
  icmpv6_type: 'mld-listener-reduction=132',
  tcp_flag: 'ece=64',
}

const tables = new Map<string, SymbolTable>()
for (const type of new Set([...Object.keys(symbols), ...Object.keys(furtherNames)])) {
  const numbers = new Map<string, number>()
  const names = new Map<number, string>()
  const all = [symbols[type] ?? {}, numbersOf(furtherNames[type] ?? ''), numbersOf(aliases[type] ?? '')]
  for (const [name, number] of all.flatMap((one) => Object.entries(one))) {
    if (name === '') continue
    numbers.set(name, number)
    if (!names.has(number)) names.set(number, name)
  }
  tables.set(type, { numbers, names })
}

/** Undefined for types whose values have no names. */
export function symbolTableOf(datatype: string): SymbolTable | undefined {
  return tables.get(datatype)
}

/** Types whose values are several names together, a bit each. */
export const flagTypes: ReadonlySet<string> = new Set(['ct_state', 'ct_status', 'ct_event', 'tcp_flag'])
