/** Selectors that a packet or the node answers: addresses, ports, interfaces, marks, connection state, fib. */
import type { Expression, Selector } from '#compile/nftables/expression'
import { destinationFits, inInterfaceIs, outInterfaceIs, sourceIn, sourceIsLocal, sourcePortIn } from '../ask-source'
import { destinationIsLocal } from '../matches/address'
import { protocolNumber } from '../protocols'
import { known, negate, type Test, undecidable } from '../question'
import type { View } from '../view'
import { isBroadcast, isMulticast } from '../world'
import { askPacket } from './ask-packet'
import { fits, isIp, type Pattern, printPattern } from './scalar'
import { selectConnection } from './select-connection'
import { address, interfaceName, number, type Subject, text } from './subject'

/** Undefined for an expression that is no selector. */
export function select(expression: Expression, view: View): Subject | undefined {
  switch (expression.kind) {
    case 'payload':
      return selectPayload(expression.protocol, expression.field, view)
    case 'raw-payload':
      return selectRaw(expression, view)
    case 'meta':
      return selectMeta(expression.key, view)
    case 'ct':
      return selectConnection(expression, view)
    case 'fib':
      return selectFib(expression, view)
    case 'numgen':
      return { kind: 'chance', of: number('integer'), modulus: expression.modulus, offset: expression.offset }
    case 'jhash':
    case 'symhash':
      return { kind: 'chance', of: number('integer'), modulus: expression.modulus, offset: expression.offset }
    case 'exthdr':
    case 'tcp-option':
    case 'raw-tcp-option':
    case 'ip-option':
    case 'sctp-chunk':
    case 'dccp-option':
    case 'rt':
    case 'socket':
    case 'osf':
    case 'ipsec':
      return openSubject(
        textOfSelector(expression),
        expression.kind === 'socket' || expression.kind === 'ipsec' ? 'packet' : 'fact',
      )
    default:
      return undefined
  }
}

function openSubject(what: string, subject: 'packet' | 'fact'): Subject {
  return {
    kind: 'open',
    of: text,
    ask: (view, pattern) => askPacket(view, { what: `${what} ${printPattern(pattern)}`, subject }),
  }
}

export function textOfSelector(selector: Selector): string {
  switch (selector.kind) {
    case 'payload':
      return `${selector.protocol} ${selector.field}`
    case 'meta':
    case 'rt':
    case 'socket':
    case 'ct':
      return `${selector.kind} ${selector.key}`
    default:
      return selector.kind
  }
}

const portProtocols = new Set(['tcp', 'udp', 'sctp', 'dccp', 'udplite'])

function selectPayload(protocol: string, field: string, view: View): Subject {
  const { fields } = view
  if (protocol === 'ip' || protocol === 'ip6') {
    if ((protocol === 'ip') !== (fields.family === 'ipv4')) return { kind: 'absent' }
    return selectNetwork(field, view)
  }
  if (protocol === 'icmp' || protocol === 'icmpv6') return selectIcmp(protocol, field, view)
  if (protocol === 'th' || portProtocols.has(protocol)) {
    const isOther = protocol === 'th' ? !portProtocols.has(fields.protocol) : fields.protocol !== protocol
    if (isOther && fields.protocol !== 'all') return { kind: 'absent' }
    return selectTransport(protocol, field, view)
  }
  if (protocol === 'ether' || protocol === 'vlan' || protocol === 'arp')
    return openSubject(`${protocol} ${field}`, 'packet')
  return { kind: 'absent' }
}

function selectNetwork(field: string, view: View): Subject {
  const { fields } = view
  if (field === 'daddr') return selectDestination(view)
  if (field === 'saddr') return selectSource(view)
  if (field === 'protocol' || field === 'nexthdr') return selectProtocol(view)
  if (field === 'version') return { kind: 'known', of: number('integer'), value: fields.family === 'ipv4' ? 4 : 6 }
  return openSubject(`${fields.family === 'ipv4' ? 'ip' : 'ip6'} ${field}`, 'packet')
}

function selectDestination({ fields }: View): Subject {
  if (fields.redirectedTo === undefined) return { kind: 'known', of: address, value: fields.destination }
  return {
    kind: 'open',
    of: address,
    ask: (view, pattern) => destinationFits(view, printPattern(pattern), (ip) => fits(ip, pattern)),
  }
}

function selectSource({ fields }: View): Subject {
  if (fields.source !== undefined) return { kind: 'known', of: address, value: fields.source }
  return { kind: 'open', of: address, ask: askSource }
}

function askSource(view: View, pattern: Pattern): Test {
  if (pattern.kind === 'any') return known(true)
  if (pattern.kind === 'prefix')
    return sourceIn(view, { ip: pattern.prefix.ip, mask: undefined, prefix: pattern.prefix })
  if (pattern.kind === 'one' && isIp(pattern.value)) {
    const length = pattern.value.family === 'ipv4' ? 32 : 128
    return sourceIn(view, { ip: pattern.value, mask: undefined, prefix: { ip: pattern.value, length } })
  }
  return askPacket(view, { what: `the source is in ${printPattern(pattern)}`, subject: 'packet' })
}

function selectProtocol({ fields }: View): Subject {
  const value = fields.protocol === 'all' ? undefined : protocolNumber(fields.protocol)
  if (value !== undefined) return { kind: 'known', of: number('inet_proto'), value }
  return { kind: 'open', of: number('inet_proto'), ask: () => undecidable('the protocol') }
}

function selectTransport(protocol: string, field: string, view: View): Subject {
  const { fields } = view
  if (field === 'dport' && fields.destinationPort !== undefined) {
    return { kind: 'known', of: number('inet_service'), value: fields.destinationPort }
  }
  if (field === 'sport') {
    if (fields.sourcePort !== undefined) return { kind: 'known', of: number('inet_service'), value: fields.sourcePort }
    return { kind: 'open', of: number('inet_service'), ask: askSourcePort }
  }
  // A connection's first TCP packet has SYN alone.
  if (protocol === 'tcp' && field === 'flags' && fields.state === 'NEW')
    return { kind: 'known', of: number('tcp_flag'), value: 2 }
  return openSubject(`${protocol} ${field}`, 'packet')
}

function askSourcePort(view: View, pattern: Pattern): Test {
  if (pattern.kind === 'one' && typeof pattern.value === 'number')
    return sourcePortIn(view, { from: pattern.value, to: pattern.value })
  if (pattern.kind === 'range' && typeof pattern.from === 'number' && typeof pattern.to === 'number') {
    return sourcePortIn(view, { from: pattern.from, to: pattern.to })
  }
  return pattern.kind === 'any' ? known(true) : undecidable(`the source port ${printPattern(pattern)}`)
}

function selectIcmp(protocol: 'icmp' | 'icmpv6', field: string, { fields }: View): Subject {
  if (fields.protocol !== protocol)
    return fields.protocol === 'all' ? openSubject(`${protocol} ${field}`, 'fact') : { kind: 'absent' }
  const type = number(`${protocol}_${field}`)
  if (fields.icmp !== undefined && field === 'type') return { kind: 'known', of: type, value: fields.icmp.type }
  if (fields.icmp !== undefined && field === 'code') return { kind: 'known', of: type, value: fields.icmp.code }
  return openSubject(`${protocol} ${field}`, 'packet')
}

/** `@th,16,16` is the destination port, `@nh,96,32` the IPv4 source: what knftables and xtables-translate write. */
function selectRaw(
  raw: { readonly base: string; readonly offset: number; readonly length: number },
  view: View,
): Subject {
  const { base, offset, length } = raw
  if (base === 'th' && length === 16 && offset === 0) return selectTransport('th', 'sport', view)
  if (base === 'th' && length === 16 && offset === 16) return selectTransport('th', 'dport', view)
  return openSubject(`@${base},${offset},${length}`, 'packet')
}

function selectMeta(key: string, view: View): Subject {
  const { fields } = view
  switch (key) {
    case 'l4proto':
      return selectProtocol(view)
    case 'nfproto':
      return { kind: 'known', of: number('nf_proto'), value: fields.family === 'ipv4' ? 2 : 10 }
    case 'protocol':
      return { kind: 'known', of: number('ether_type'), value: fields.family === 'ipv4' ? 0x800 : 0x86dd }
    case 'mark':
      if (fields.mark === undefined) return openSubject('meta mark', 'fact')
      return { kind: 'known', of: number('mark'), value: fields.mark }
    case 'iifname':
    case 'iif':
      return selectInterface(view, 'in')
    case 'oifname':
    case 'oif':
      return selectInterface(view, 'out')
    case 'pkttype':
      return { kind: 'known', of: number('pkt_type'), value: packetType(view) }
    case 'random':
      return { kind: 'chance', of: number('integer'), modulus: 2 ** 32, offset: 0 }
    case 'skuid':
    case 'skgid':
    case 'cgroup':
      return fields.way === 'wire' ? { kind: 'absent' } : openSubject(`the sending process has ${key}`, 'packet')
    case 'time':
    case 'day':
    case 'hour':
      return openSubject(`meta ${key}`, 'fact')
    default:
      return openSubject(`meta ${key}`, 'packet')
  }
}

function packetType({ fields }: View): number {
  if (isBroadcast(fields.destination)) return 1
  return isMulticast(fields.destination) ? 2 : 0
}

/** nft leaves a rule that asks for an interface which is not there; its name in a hook without one is empty. */
function selectInterface(view: View, side: 'in' | 'out'): Subject {
  const value = side === 'in' ? view.fields.inInterface : view.fields.outInterface
  const hasNone =
    side === 'in'
      ? view.fields.way === 'process' && (view.hook === 'OUTPUT' || view.hook === 'POSTROUTING')
      : view.hook === 'INGRESS' || view.hook === 'PREROUTING' || view.hook === 'INPUT'
  if (hasNone) return { kind: 'known', of: interfaceName, value: '' }
  if (value !== undefined) return { kind: 'known', of: interfaceName, value }
  const is = side === 'in' ? inInterfaceIs : outInterfaceIs
  return {
    kind: 'open',
    of: interfaceName,
    ask: (asked, pattern) =>
      pattern.kind === 'one' ? is(asked, String(pattern.value).replace(/\*$/, '+')) : undecidable(`${side} interface`),
  }
}

function selectFib(fib: { readonly result: string; readonly flags: readonly string[] }, view: View): Subject {
  const side = fib.flags.includes('saddr') ? 'source' : 'destination'
  if (fib.result === 'type' && !fib.flags.includes('iif') && !fib.flags.includes('oif')) {
    return { kind: 'open', of: number('fib_addrtype'), ask: (asked, pattern) => askAddressType(asked, side, pattern) }
  }
  // `fib saddr . iif oif`: where the way back leads; the usual packet came from there.
  if (side === 'source' && fib.flags.includes('iif')) {
    return {
      kind: 'open',
      of: number('integer'),
      ask: (asked, pattern) => {
        const isMissing = pattern.kind === 'one' && (pattern.value === 0 || pattern.value === 'missing')
        const back = askPacket(asked, {
          what: 'the way back to the source is the interface it came in by',
          subject: 'packet',
          usual: true,
        })
        return isMissing ? negate(back) : back
      },
    }
  }
  const result = view.fields.family === 'ipv4' ? 'fib' : 'fib6'
  return openSubject(`${result} ${fib.flags.join(' . ')} ${fib.result}`, 'fact')
}

/** unicast 1, local 2, broadcast 3, multicast 5. */
function askAddressType(view: View, side: 'source' | 'destination', pattern: Pattern): Test {
  if (pattern.kind !== 'one') return undecidable(`fib type ${printPattern(pattern)}`)
  const ip = side === 'source' ? view.fields.source : view.fields.destination
  const isGroup = ip !== undefined && isMulticast(ip)
  const isAll = ip !== undefined && isBroadcast(ip)
  if (pattern.value === 5) return known(isGroup)
  if (pattern.value === 3) return known(isAll)
  if (isGroup || isAll) return known(false)
  const local = side === 'source' ? sourceIsLocal(view) : destinationIsLocal(view)
  if (pattern.value === 2) return local
  return pattern.value === 1 ? negate(local) : known(false)
}
