/** Errors of ICMP and translated connections. Mirrors snat_v4_nat, snat_v4_rev_nat and their twins of IPv6 in bpf/lib/nat.h, Cilium 1.16 to 1.19. */
import { printIp } from '#base/ip'
import { type CiliumVersion, isAtLeast } from '#model/cilium-version'
import type { WalkInner, WalkPlace } from '#model/walk'
import {
  addressText,
  type FlowPacket,
  icmpCodeOf,
  innerText,
  isIcmp,
  rewriteDestination,
  rewritePlace,
  rewriteSource,
} from './flow-packet'
import type { NodeTables } from './node-tables'
import { lookUpNat, type NatFound } from './state-tables'
import { type Draft, drop, type Ending, stateOf, tell, tellRewrite, unknown } from './walk-draft'

/** On its way in. `undefined`: it goes on as it is. */
export function reverseError(draft: Draft, node: NodeTables, at: WalkPlace): 'translated' | Ending | undefined {
  const { packet } = draft
  const { about } = packet
  if (about === undefined) {
    const why = 'what it is about is not told (--about), and is taken to be no translated connection'
    tell(draft, at, ['asked for reverse NAT', why])
    return undefined
  }
  const { row, lookup } = lookUpNat(stateOf(draft, node), answerTo(about), 'IN')
  if (row === undefined) {
    const why = `no mapping: ${innerText(about)}, which it is about, is no translated connection`
    tell(draft, at, ['asked for reverse NAT', why], { lookups: [lookup] })
    return undefined
  }
  const { version } = node.maps.settings.policy
  const isTranslated = translatesBack(packet, version)
  if (isTranslated === undefined) {
    const sentence = `it is about a translated connection of ${printIp(row.to.ip)}, and whether ${version} translates ${errorName(packet)} back is not known`
    return unknown(draft, at, 'cilium.error-untold', sentence)
  }
  if (!isTranslated) {
    const sentence = `it is about a translated connection of ${printIp(row.to.ip)}, which never learns of it: ${version} translates no ${errorName(packet)} back`
    tell(draft, at, ['passed it on untranslated', sentence])
    draft.doubts.push({ code: 'cilium.error-untranslated', sentence })
    return undefined
  }
  const inside: WalkInner = { ...about, source: row.to.ip, sourcePort: row.to.port }
  const outer = rewriteDestination(packet, { ip: row.to.ip, port: packet.port }, rewritePlace(at))
  const words = ['translated the error back', 'what it is about is a translated connection'] as const
  const written = withInside({ packet, outer }, inside)
  const marked = at.hook === 'xdp' ? written.packet : { ...written.packet, mark: 0x300 }
  tellRewrite(draft, at, words, { packet: marked, changes: written.changes, lookups: [lookup] })
  return 'translated'
}

/**
 * On its way out, where a packet of its kind is translated: by the translation of what it is about, or as it is. Kinds
 * that the release does not know are dropped.
 */
export function translateError(draft: Draft, node: NodeTables, at: WalkPlace): Ending | undefined {
  const { packet } = draft
  const { version } = node.maps.settings.policy
  const number = refusedOut(packet, version)
  if (number !== undefined) {
    const sentence = `what leaves here from ${printIp(packet.source)} is translated, and ${version} has no way to translate ${errorName(packet)}`
    return drop(draft, at, number, { sentence })
  }
  const { about } = packet
  const found = about === undefined ? undefined : lookUpNat(stateOf(draft, node), echoed(about), 'OUT')
  const row = found?.row
  if (found === undefined || about === undefined || row === undefined) {
    const what =
      about === undefined
        ? 'what it is about is not told (--about), and is taken to be'
        : `${innerText(about)}, which it is about, is`
    tell(draft, at, ['kept the source', `${what} no translated connection, and errors have no mapping of their own`], {
      lookups: lookupsOf(found),
    })
    return undefined
  }
  const inside: WalkInner = isIcmp(about.protocol)
    ? { ...about, destination: row.to.ip, sourcePort: row.to.port }
    : { ...about, destination: row.to.ip, port: row.to.port }
  const outer = rewriteSource(packet, { ip: row.to.ip, port: packet.sourcePort }, rewritePlace(at))
  const words = ['translated the error', 'what it is about came to a translated connection'] as const
  tellRewrite(draft, at, words, { ...withInside({ packet, outer }, inside), lookups: lookupsOf(found) })
  return undefined
}

function lookupsOf(found: NatFound | undefined): readonly NatFound['lookup'][] {
  return found === undefined ? [] : [found.lookup]
}

type Outer = { readonly packet: FlowPacket; readonly outer: ReturnType<typeof rewriteSource> }

/** The packet inside is rewritten as the addresses around it are. */
export function withInside({ packet, outer }: Outer, inside: WalkInner): ReturnType<typeof rewriteSource> {
  const by = outer.changes[0]?.by ?? ''
  const [was, is] = [endsOf(packet.about ?? inside), endsOf(inside)]
  const changes = (['source', 'destination'] as const)
    .filter((end) => was[end] !== is[end])
    .map((end) => ({ field: `${end} inside`, before: was[end], after: is[end], by }))
  return { packet: { ...outer.packet, about: inside }, changes: [...outer.changes, ...changes] }
}

function endsOf(inside: WalkInner): Readonly<Record<'source' | 'destination', string>> {
  const { protocol, source, sourcePort, destination, port } = inside
  const id = isIcmp(protocol) ? ` id ${sourcePort}` : ''
  return {
    source: `${addressText({ protocol }, source, sourcePort)}${id}`,
    destination: addressText({ protocol }, destination, port),
  }
}

/**
 * Of type 3 the code “fragmentation needed” in every release, the others since 1.17 (#35636), that the TTL is used up since
 * 1.18 (#36767); of ICMPv6 that a packet is too big. Undefined where no source at hand tells.
 */
function translatesBack(packet: FlowPacket, version: CiliumVersion): boolean | undefined {
  const code = icmpCodeOf(packet)
  if (packet.protocol === 'ICMP') {
    if (packet.icmpType === 3) return code === 4 || (isAtLeast(version, '1.17') && code <= 15)
    return packet.icmpType === 11 && code <= 1 && isAtLeast(version, '1.18')
  }
  if (packet.icmpType === 2) return true
  return isAtLeast(version, '1.19') && (packet.icmpType === 1 || packet.icmpType === 3) ? undefined : false
}

/** The same out of the node, where what is not known is dropped; errors of ICMPv6 since 1.18 (#38068, #39505). */
function refusedOut(packet: FlowPacket, version: CiliumVersion): 143 | 145 | 168 | undefined {
  const code = icmpCodeOf(packet)
  const type = packet.icmpType
  if (packet.protocol === 'ICMP') {
    if (type === 3) return code === 4 || (isAtLeast(version, '1.17') && code <= 15) ? undefined : 143
    if (type !== 11 || !isAtLeast(version, '1.18')) return 168
    return code <= 1 ? undefined : 143
  }
  if (!isAtLeast(version, '1.18')) return 168
  if (type === 2) return undefined
  if (type === 1) return code <= 6 ? undefined : 145
  if (type === 3) return code <= 1 ? undefined : 145
  return 168
}

function errorName(packet: FlowPacket): string {
  const { protocol, icmpType = 0 } = packet
  const isCoded = protocol === 'ICMP' ? icmpType === 3 || icmpType === 11 : icmpType === 1 || icmpType === 3
  return `${protocol} type ${icmpType}${isCoded ? ` code ${icmpCodeOf(packet)}` : ''}`
}

/** What answers the packet inside; of an echo the identifier stays where translations look for it. */
export function answerTo({ protocol, source, sourcePort, destination, port }: WalkInner): FlowPacket {
  return { protocol, source: destination, sourcePort: port, destination: source, port: sourcePort, wrappings: [] }
}

/** On the way out the packet inside came to whoever sends the error, as the answer of an echo has its identifier. */
function echoed(about: WalkInner): FlowPacket {
  const turned = answerTo(about)
  return isIcmp(about.protocol) ? { ...turned, sourcePort: turned.port, port: turned.sourcePort } : turned
}
