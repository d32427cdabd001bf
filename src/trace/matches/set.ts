/** set: membership in an ipset that was given beside the ruleset. */

import type { Ip } from '#base/ip'
import { hasPort } from '#base/port-range'
import { type IpSet, partHasIp, type SetMember, type SetPart } from '#compile/iptables/parse-ipset'
import type { Option } from '#compile/iptables/rule'
import { askOnPath } from '../ask-source'
import type { Fields } from '../path'
import { protocolNumber } from '../protocols'
import { known, negateIf, type Test, undecidable } from '../question'
import type { Decide, View } from '../view'

export function compileSet(options: readonly Option[]): Decide {
  const rest = options.filter((option) => option.flag !== '--match-set')
  const tests = options
    .filter((option) => option.flag === '--match-set')
    .map((option) => {
      const [name = '', directions = ''] = option.values
      return (view: View): Test => negateIf(option.not, setTest(view, name, directions.split(',')))
    })
  const open = rest.filter(
    (option) =>
      !['--return-nomatch', '!--update-counters', '--update-counters', '--update-subcounters'].includes(option.flag),
  )
  return (view) => [...tests.map((test) => test(view)), ...open.map((option) => undecidable(`-m set ${option.flag}`))]
}

function setTest(view: View, name: string, directions: readonly string[]): Test {
  const set = view.world.sets.get(name)
  if (set === undefined) return undecidable(`set ${name}, whose members were not given (add the output of ipset save),`)
  return memberTest(view, set, directions)
}

/** The first answer that holds wins; with a source that is not known, one question stands for the whole set. */
function memberTest(view: View, set: IpSet, directions: readonly string[]): Test {
  if (set.type === 'list:set') return listTest(view, set, directions)
  if (set.family !== undefined && set.family !== view.fields.family) return known(false)
  let best: { readonly member: SetMember; readonly length: number } | undefined
  let open = false
  for (const member of nearest(view, candidates(view, set, directions), { set, directions })) {
    const fits = memberFits(view, member, directions)
    if (fits === 'open') open = true
    else if (fits && lengthOf(member) > (best?.length ?? -1)) best = { member, length: lengthOf(member) }
  }
  if (best !== undefined) return known(!best.member.isNoMatch)
  if (!open) return known(false)
  const sides = directions.join(',')
  return askOnPath(view.path, {
    key: `set:${set.name}:${sides}`,
    subject: { kind: 'packet' },
    yes: `set ${set.name} has its ${sides}`,
    no: `set ${set.name} does not have its ${sides}`,
    usual: false,
  })
}

type SetQuery = { readonly set: IpSet; readonly directions: readonly string[] }

/** In a set of networks with interfaces the narrowest network decides: a wider one with the right interface is not tried. */
function nearest(view: View, members: readonly SetMember[], { set, directions }: SetQuery): readonly SetMember[] {
  if (!set.dimensions.includes('iface')) return members
  const holding = members.filter(
    ({ parts: [net] }) => net !== undefined && partFits(view, net, directions[0] ?? 'dst') !== false,
  )
  if (addressesOf(view.fields, directions[0] ?? 'dst')?.length !== 1) return holding
  const longest = Math.max(0, ...holding.map(lengthOf))
  return holding.filter((member) => lengthOf(member) === longest)
}

function candidates(view: View, set: IpSet, directions: readonly string[]): readonly SetMember[] {
  const first = set.dimensions[0]
  const addresses = addressesOf(view.fields, directions[0] ?? 'dst')
  const address = addresses?.length === 1 ? addresses[0] : undefined
  if (address === undefined || first !== 'ip' || set.byAddress.size !== set.members.length) {
    if (address === undefined || set.byAddress.size === 0) return set.members
    const exact = set.byAddress.get(address.words.join('.')) ?? []
    return [...exact, ...set.members.filter((member) => !isExact(member))]
  }
  return set.byAddress.get(address.words.join('.')) ?? []
}

function isExact(member: SetMember): boolean {
  const part = member.parts[0]
  return part?.kind === 'prefix' && part.prefix.length === (part.prefix.ip.family === 'ipv4' ? 32 : 128)
}

function lengthOf(member: SetMember): number {
  return member.parts.reduce((sum, part) => sum + (part.kind === 'prefix' ? part.prefix.length : 0), 0)
}

function memberFits(view: View, member: SetMember, directions: readonly string[]): boolean | 'open' {
  let open = false
  for (const [index, part] of member.parts.entries()) {
    const fits = partFits(view, part, directions[index] ?? 'dst')
    if (fits === false) return false
    if (fits === 'open') open = true
  }
  return open ? 'open' : true
}

function partFits(view: View, part: SetPart, direction: string): boolean | 'open' {
  const { fields } = view
  if (part.kind === 'prefix' || part.kind === 'range') {
    const addresses = addressesOf(fields, direction)
    const answers = new Set(addresses?.map((ip) => partHasIp(part, ip)))
    const [only] = answers
    return only === undefined || answers.size > 1 ? 'open' : only
  }
  if (part.kind === 'port') {
    if (part.protocol !== undefined && protocolNumber(part.protocol) !== protocolNumber(fields.protocol)) return false
    // A set of ports alone looks at TCP and UDP (ip_set_getport.c ip_set_get_ip_port).
    if (part.protocol === undefined && !['tcp', 'udp'].includes(fields.protocol))
      return fields.protocol === 'all' ? 'open' : false
    const port = direction === 'src' ? fields.sourcePort : fields.destinationPort
    return port === undefined ? 'open' : hasPort(part.ports, port)
  }
  // The type and code of ICMP stand where others have a port.
  if (/^icmp(v6)?:/.test(part.text)) return fields.protocol.startsWith('icmp') ? 'open' : false
  const name = direction === 'src' ? fields.inInterface : fields.outInterface
  return name === undefined ? 'open' : name === part.text
}

/** Undefined when nothing is known of it; several when it is one of them. */
function addressesOf({ source, destination, redirectedTo }: Fields, direction: string): readonly Ip[] | undefined {
  if (direction === 'src') return source === undefined ? undefined : [source]
  return redirectedTo ?? [destination]
}

/** A list of sets holds when one of them does. */
function listTest(view: View, set: IpSet, directions: readonly string[]): Test {
  let open: Test | undefined
  for (const member of set.members) {
    const part = member.parts[0]
    const inner = part?.kind === 'text' ? view.world.sets.get(part.text) : undefined
    if (inner === undefined || inner.type === 'list:set') continue
    const test = memberTest(view, inner, directions)
    if (test.kind === 'known' && test.holds) return test
    if (test.kind !== 'known') open ??= test
  }
  return open ?? known(false)
}
