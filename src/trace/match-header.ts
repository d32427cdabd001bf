/** The header clauses of a rule: addresses, interfaces, protocol, fragments. */
import type { Clause } from '#compile/iptables/rule'
import { destinationFits, inInterfaceIs, outInterfaceIs, sourceIn } from './ask-source'
import { hasAddress, parseMaskedAddress } from './masked-address'
import { protocolNumber } from './protocols'
import { known, negateIf, type Test, undecidable } from './question'
import type { Decide, View } from './view'

type HeaderClause = Exclude<Clause, { readonly kind: 'match' }>

export function compileHeader(clause: HeaderClause): Decide {
  const test = compileTest(clause)
  return (view) => [negateIf(clause.not, test(view))]
}

function compileTest(clause: HeaderClause): (view: View) => Test {
  const { kind, value } = clause
  if (kind === 'source' || kind === 'destination') return compileAddress(kind, value)
  if (kind === 'in-interface') return (view) => inInterfaceIs(view, value)
  if (kind === 'out-interface') return (view) => outInterfaceIs(view, value)
  if (kind === 'fragment') return () => known(false)
  return compileProtocol(value)
}

function compileAddress(kind: 'source' | 'destination', value: string): (view: View) => Test {
  const masked = parseMaskedAddress(value)
  if (masked === undefined) return () => undecidable(`${kind} "${value}"`)
  if (kind === 'source') return (view) => sourceIn(view, masked)
  return (view) => destinationFits(view, value, (ip) => hasAddress(masked, ip))
}

function compileProtocol(value: string): (view: View) => Test {
  const wanted = protocolNumber(value)
  if (wanted === undefined) return () => undecidable(`protocol "${value}"`)
  if (wanted === 0) return () => known(true)
  return (view) => {
    if (view.fields.protocol !== 'all') return known(protocolNumber(view.fields.protocol) === wanted)
    return undecidable(`protocol ${value}`)
  }
}
