/** Why nothing answers at a Service's address: what the rules tell of a destination that none of them took. */
import { printIp } from '#base/ip'
import { commentOf, type Rule, type Ruleset } from '#compile/iptables/rule'
import type { Packet } from '#model/packet'
import { rulesForAddress } from './chain-index'

/** A sentence when the destination is a Service's address in these rules, undefined when it is none. */
export function serviceNotes(rulesets: readonly Ruleset[], packet: Packet): string | undefined {
  const rules = rulesets.flatMap((ruleset) => [
    ...rulesFor(ruleset, 'nat', packet),
    ...rulesFor(ruleset, 'filter', packet),
  ])
  const first = rules[0]
  if (first === undefined) return undefined
  const ip = printIp(packet.destination)
  const comment = commentOf(first)
  const [name, kind] = nameIn(comment)
  const of = name === undefined ? 'a Service' : `Service ${name}`
  const what = kind === 'cluster IP' ? `the ClusterIP of ${of}` : `an address of ${of}`
  if (packet.protocol === 'icmp' || packet.protocol === 'icmpv6') {
    return `${ip} is ${what}: it is on no interface and its rules take no ICMP, so nothing answers a ping`
  }
  const ports = [...new Set(rules.map(portOf).filter((port) => port !== undefined))].join(', ')
  const asked = packet.destinationPort === undefined ? packet.protocol : `${packet.protocol} ${packet.destinationPort}`
  return `${ip} is ${what}, which has no rule for ${asked} (its rules: ${ports || 'none with a port'}); the address is on no interface, so nothing answers and the client times out`
}

function rulesFor(ruleset: Ruleset, table: string, packet: Packet): readonly Rule[] {
  const chain = ruleset.tables.get(table)?.chains.get('KUBE-SERVICES')
  return chain === undefined ? [] : rulesForAddress(chain, packet.destination)
}

/** `shop/web cluster IP`, `shop/web:http has no endpoints`. */
function nameIn(comment: string | undefined): readonly [string | undefined, string | undefined] {
  const match =
    /^([^\s:]+\/[^\s:]+)(?::\S*)? (cluster IP|external IP|loadbalancer IP|has no (?:local )?endpoints)/.exec(
      comment ?? '',
    )
  return [match?.[1], match?.[2]]
}

function portOf(rule: Rule): string | undefined {
  for (const clause of rule.clauses) {
    if (clause.kind !== 'match') continue
    const port = clause.options.find((option) => option.flag === '--dport')?.values[0]
    if (port !== undefined) return `${clause.name} ${port}`
  }
  return undefined
}
