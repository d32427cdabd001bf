/** A fast way into long chains: which rules a packet could match, by exact destination address and port. */
import type { Ip } from '#base/ip'
import type { Chain, Rule } from '#compile/iptables/rule'
import { parseMaskedAddress } from './masked-address'
import type { Fields } from './path'

type ChainIndex = {
  readonly byAddress: ReadonlyMap<string, readonly number[]>
  readonly byPort: ReadonlyMap<string, readonly number[]>
  readonly others: readonly number[]
}

/** Chains shorter than this are walked rule by rule. */
const shortChain = 32

const indexes = new WeakMap<Chain, ChainIndex>()

/** Numbers of the rules that may match, ascending: all that are left out ask for another destination. */
export function candidateRules(chain: Chain, fields: Fields): Iterable<number> {
  if (chain.rules.length < shortChain || fields.redirectedTo !== undefined) return chain.rules.keys()
  const index = indexOf(chain)
  const byAddress = index.byAddress.get(fields.destination.words.join('.')) ?? []
  const byPort =
    fields.destinationPort === undefined
      ? [...index.byPort.values()].flat()
      : (index.byPort.get(String(fields.destinationPort)) ?? [])
  if (byAddress.length + byPort.length === 0) return index.others
  return [...byAddress, ...byPort, ...index.others].sort((a, b) => a - b)
}

/** Rules that ask for this one address as the destination, in order. */
export function rulesForAddress(chain: Chain, ip: Ip): readonly Rule[] {
  const numbers = indexOf(chain).byAddress.get(ip.words.join('.')) ?? []
  return numbers.flatMap((number) => chain.rules[number] ?? [])
}

function indexOf(chain: Chain): ChainIndex {
  const known = indexes.get(chain)
  if (known !== undefined) return known
  const byAddress = new Map<string, number[]>()
  const byPort = new Map<string, number[]>()
  const others: number[] = []
  for (const [number, rule] of chain.rules.entries()) {
    const address = exactAddress(rule)
    const port = address === undefined ? exactPort(rule) : undefined
    if (address !== undefined) append(byAddress, address, number)
    else if (port !== undefined) append(byPort, port, number)
    else others.push(number)
  }
  const index = { byAddress, byPort, others }
  indexes.set(chain, index)
  return index
}

function append(map: Map<string, number[]>, key: string, number: number): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [number])
  else list.push(number)
}

function exactAddress(rule: Rule): string | undefined {
  for (const clause of rule.clauses) {
    if (clause.kind !== 'destination' || clause.not) continue
    const prefix = parseMaskedAddress(clause.value)?.prefix
    if (prefix === undefined || prefix.length !== (prefix.ip.family === 'ipv4' ? 32 : 128)) return undefined
    return prefix.ip.words.join('.')
  }
  return undefined
}

function exactPort(rule: Rule): string | undefined {
  for (const clause of rule.clauses) {
    if (clause.kind !== 'match' || !['tcp', 'udp', 'sctp'].includes(clause.name)) continue
    const option = clause.options.find((candidate) => candidate.flag === '--dport')
    const value = option?.values[0]
    return option !== undefined && !option.not && value !== undefined && /^[1-9]\d*$/.test(value) ? value : undefined
  }
  return undefined
}
