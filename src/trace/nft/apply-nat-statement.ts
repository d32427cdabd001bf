/** dnat, snat, masquerade, redirect and tproxy of nftables: who the packet is for, and from, after the statement. */
import { compareIp, type Ip, ipFromBigint, ipToBigint } from '#base/ip'
import { bitsOf, maskWords, type Prefix } from '#base/prefix'
import type { Expression } from '#compile/nftables/expression'
import type { Nat, Statement } from '#compile/nftables/statement'
import { portIn, printAtPort, printTarget } from '../nat-range'
import { emptyPath, type Fields, type Path, withHop } from '../path'
import { redirectTo } from '../redirect'
import { evaluate, hasAddress, singleNumber, singleScalar } from './evaluate'
import { type NftPlace, nftHop } from './nft-place'
import { isIp, type Pattern, printPattern } from './scalar'
import type { Part } from './split'

/** `ended` leave the base chain, `misses` go on with the next rule, `passes` with the next statement. */
export type NatEffect = {
  readonly ended: readonly Path[]
  readonly misses: readonly Part[]
  readonly passes: readonly Part[]
}

export function applyNatStatement(nat: Nat, part: Part, place: NftPlace): NatEffect {
  const value = nat.address ?? nat.port
  if (nat.kind === 'masquerade' || value === undefined) {
    return {
      ended: [nat.kind === 'redirect' ? redirect(part, place, undefined) : translateSource(part, place, undefined)],
      misses: [],
      passes: [],
    }
  }
  const { found, misses } = evaluate(value, part, place)
  // In an inet table `dnat ip to …` does nothing to an IPv6 packet (nft_nat_inet_eval in nft_nat.c).
  const isOther = nat.family !== undefined && (nat.family === 'ip') !== (part.path.fields.family === 'ipv4')
  if (isOther) return { ended: [], misses, passes: found.map((one) => one.part) }
  const ended = found.flatMap(({ part: own, values }) => {
    const sorted = sortValues(nat, values, place)
    const { address } = sorted
    const port = settlePort(sorted.port, own.path.fields.destinationPort, nat)
    if (nat.kind === 'redirect') return [redirect(own, place, port)]
    if (nat.kind === 'snat') return [translateSource(own, place, address)]
    return translateDestination(own, place, { address, port })
  })
  return { ended, misses, passes: [] }
}

/** Of a range of ports the kernel takes one that follows from the packet's own, unless it is told to take any. */
function settlePort(port: Pattern | undefined, own: number | undefined, { flags }: Nat): Pattern | undefined {
  if (port?.kind !== 'range') return port
  const value = portIn(printPattern(port), own, flags.includes('random') || flags.includes('fully-random'))
  return value === undefined ? port : { kind: 'one', value }
}

type Sorted = { readonly address: Pattern | undefined; readonly port: Pattern | undefined }

/** A map's value may hold address and port together; otherwise the port stands by itself. */
function sortValues(nat: Nat, values: readonly (Pattern | undefined)[], place: NftPlace): Sorted {
  const [first, second] = values
  if (nat.address === undefined) return { address: undefined, port: first }
  if (second !== undefined) return { address: first, port: second }
  return { address: first, port: nat.port === undefined ? undefined : plainPort(nat.port, place) }
}

function plainPort(port: Expression, place: NftPlace): Pattern | undefined {
  const { found } = evaluate(port, { path: emptyPath, conditions: [] }, place)
  return found[0]?.values[0]
}

function translateDestination(part: Part, place: NftPlace, { address, port }: Sorted): readonly Path[] {
  const { path } = part
  const { fields } = path
  const number = port === undefined ? fields.destinationPort : singleNumber(port)
  const targets = address === undefined ? [fields.destination] : addressesOf(address, fields.destination)
  if (targets === undefined || (address !== undefined && !hasAddress(address))) {
    const why = `where dnat sends it cannot be told from the rule`
    const hop = nftHop(place, 'sent elsewhere')
    return [{ ...withHop(path, hop), end: { kind: 'unknown', why, place: hop } }]
  }
  return targets.map((ip) => {
    const proxy = port !== undefined && number === undefined ? printTarget(ip, printPattern(port)) : undefined
    const sent = withDestination(fields, ip, number)
    const hop = {
      ...nftHop(place, `sent to ${proxy ?? printTarget(ip, number)}`),
      before: text(fields),
      after: text(sent),
    }
    const one = { ...path, share: path.share / targets.length, fields: { ...sent, proxy } }
    return { ...withHop(one, hop), end: { kind: 'accept', rule: place.rule, place: hop } }
  })
}

function text(fields: Fields): string {
  return fields.redirectedTo === undefined
    ? printTarget(fields.destination, fields.destinationPort)
    : (fields.proxy ?? 'this node')
}

/** To conntrack a destination that is translated to itself is not translated. */
function withDestination(fields: Fields, ip: Ip, port: number | undefined): Fields {
  const isSame = compareIp(ip, fields.destination) === 0 && port === fields.destinationPort
  return { ...fields, destination: ip, destinationPort: port, isDnat: fields.isDnat || !isSame }
}

const mostAddresses = 256n

/** A prefix maps host bits onto hosts; a range is spread by a hash of the source. */
function addressesOf(pattern: Pattern, destination: Ip): readonly Ip[] | undefined {
  if (pattern.kind === 'one') return isIp(pattern.value) ? [pattern.value] : undefined
  if (pattern.kind === 'prefix') return [mapPrefix(pattern.prefix, destination)]
  if (pattern.kind !== 'range' || !isIp(pattern.from) || !isIp(pattern.to)) return undefined
  const { from, to } = pattern
  const first = ipToBigint(from)
  const count = ipToBigint(to) - first + 1n
  if (count > mostAddresses) return undefined
  return Array.from({ length: Number(count) }, (_, index) => ipFromBigint(from.family, first + BigInt(index)))
}

function mapPrefix(prefix: Prefix, ip: Ip): Ip {
  const mask = maskWords(ip.family, Math.min(prefix.length, bitsOf(ip.family)))
  return {
    family: ip.family,
    words: ip.words.map(
      (word, index) => (((prefix.ip.words[index] ?? 0) & (mask[index] ?? 0)) | (word & ~(mask[index] ?? 0))) >>> 0,
    ),
  }
}

function redirect(part: Part, place: NftPlace, port: Pattern | undefined): Path {
  const { path } = part
  const { fields } = path
  const number = port === undefined ? fields.destinationPort : singleNumber(port)
  const ports = number === undefined && port !== undefined ? printPattern(port) : undefined
  const { sent, shown } = redirectTo(place.world, fields, { port: number, ports })
  const hop = { ...nftHop(place, `redirected to ${shown}`), before: text(fields), after: text(sent) }
  return { ...withHop({ ...path, fields: sent }, hop), end: { kind: 'accept', rule: place.rule, place: hop } }
}

/** The reason of a masquerade behind a mark is the rule that set the mark. */
function translateSource(part: Part, place: NftPlace, address: Pattern | undefined): Path {
  const { path } = part
  const cause = place.hasMarkGate ? path.markCause : undefined
  const conditions = [...new Set([...(cause?.conditions ?? []), ...place.conditions, ...part.conditions])]
  const to = address === undefined ? undefined : printPattern(address)
  const source = singleScalar(address)
  const did = to === undefined ? 'source replaced by the address of the outgoing interface' : `source replaced by ${to}`
  const hop = nftHop(place, did)
  const fields = { ...path.fields, source: source !== undefined && isIp(source) ? source : undefined, isSnat: true }
  const sourceNat = { conditions, rule: cause?.rule ?? place.rule, to }
  const moved = { ...path, fields, sourceNat, sourceInside: undefined, sourceOutside: undefined }
  return { ...withHop(moved, hop), end: { kind: 'accept', rule: place.rule, place: hop } }
}

/** tproxy goes on with the rule: an accept usually follows. */
export function applyTproxyStatement(
  statement: Extract<Statement, { readonly kind: 'tproxy' }>,
  part: Part,
  place: NftPlace,
): Path {
  const { path } = part
  const port = statement.port === undefined ? undefined : singleNumber(plainPort(statement.port, place))
  const end = port ?? path.fields.destinationPort ?? ''
  const proxy =
    statement.address?.kind === 'value' ? printAtPort(String(statement.address.value), end) : `this node:${end}`
  return withHop(
    { ...path, fields: { ...path.fields, isRedirected: true, proxy } },
    nftHop(place, `handed to the transparent proxy at ${proxy}`),
  )
}
