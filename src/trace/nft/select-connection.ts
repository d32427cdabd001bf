/** Selectors of connection tracking: a connection's first packet is new, and its original direction is its own. */
import type { Selector } from '#compile/nftables/expression'
import { protocolNumber } from '../protocols'
import { undecidable } from '../question'
import type { View } from '../view'
import { askPacket } from './ask-packet'
import { printPattern } from './scalar'
import { address, number, type Subject, text } from './subject'

type Connection = Extract<Selector, { readonly kind: 'ct' }>

const stateBits = { INVALID: 1, ESTABLISHED: 2, RELATED: 4, NEW: 8, UNTRACKED: 64 } as const

export function selectConnection(selector: Connection, view: View): Subject {
  const { fields } = view
  const isTracked = view.table !== 'raw' && fields.state !== 'UNTRACKED' && fields.state !== 'INVALID'
  switch (selector.key) {
    case 'state':
      // Before connection tracking a packet has no connection, which nft tells as invalid.
      return { kind: 'known', of: number('ct_state'), value: view.table === 'raw' ? 1 : stateBits[fields.state] }
    case 'status':
      return selectStatus(view, isTracked)
    case 'mark':
      if (!isTracked) return { kind: 'absent' }
      return fields.connmark === undefined
        ? openConnection('ct mark')
        : { kind: 'known', of: number('mark'), value: fields.connmark }
    case 'direction':
      return fields.state === 'NEW' ? { kind: 'known', of: number('ct_dir'), value: 0 } : openConnection('ct direction')
    case 'l3proto':
      return { kind: 'known', of: number('nf_proto'), value: fields.family === 'ipv4' ? 2 : 10 }
    case 'protocol':
      return { kind: 'known', of: number('inet_proto'), value: protocolNumber(fields.protocol) ?? 0 }
    case 'saddr':
    case 'daddr':
    case 'proto-src':
    case 'proto-dst':
      return isTracked ? selectTuple(selector, view) : { kind: 'absent' }
    default:
      return isTracked ? openConnection(`ct ${selector.key}`) : { kind: 'absent' }
  }
}

/** Expected 1, seen-reply 2, assured 4, confirmed 8, snat 16, dnat 32. */
function selectStatus({ fields }: View, isTracked: boolean): Subject {
  if (!isTracked) return { kind: 'absent' }
  if (fields.state !== 'NEW') return openConnection('ct status')
  const value = (fields.isSnat ? 16 : 0) | (fields.isDnat ? 32 : 0)
  return { kind: 'known', of: number('ct_status'), value }
}

function selectTuple(selector: Connection, { fields }: View): Subject {
  if (selector.direction === 'reply' || fields.state !== 'NEW')
    return openConnection(`ct ${selector.direction ?? ''} ${selector.key}`)
  if (selector.key === 'daddr') return { kind: 'known', of: address, value: fields.originalDestination }
  if (selector.key === 'saddr' && fields.originalSource !== undefined) {
    return { kind: 'known', of: address, value: fields.originalSource }
  }
  if (selector.key === 'proto-dst' && fields.originalPort !== undefined) {
    return { kind: 'known', of: number('inet_service'), value: fields.originalPort }
  }
  if (selector.key === 'proto-src' && fields.sourcePort !== undefined) {
    return { kind: 'known', of: number('inet_service'), value: fields.sourcePort }
  }
  return {
    kind: 'open',
    of: selector.key.endsWith('addr') ? address : number('inet_service'),
    ask: (_, pattern) => undecidable(`ct ${selector.key} ${printPattern(pattern)}`),
  }
}

function openConnection(what: string): Subject {
  return {
    kind: 'open',
    of: text,
    ask: (view, pattern) => askPacket(view, { what: `${what} ${printPattern(pattern)}`, subject: 'packet' }),
  }
}
