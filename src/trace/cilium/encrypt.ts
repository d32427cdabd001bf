/** Encryption between nodes: WireGuard at the NIC, IPsec by the kernel's transformations. Mirrors bpf/lib/wireguard.h and bpf/lib/encrypt.h, Cilium 1.16 to 1.19. */
import { printIp } from '#base/ip'
import { containsIp, printPrefix } from '#base/prefix'
import { hostFlag } from '#compile/cilium/render-lxc'
import { isAtLeast } from '#model/cilium-version'
import type { MapLookup, WalkPlace } from '#model/walk'
import { isRemoteNode } from './find-service'
import type { Wrapping } from './flow-packet'
import type { NodeTables } from './node-tables'
import { type Draft, drop, type Ending, tell, unknown } from './walk-draft'

const wireguardPort = 51871

/** Wraps what has to be encrypted; an ending where it must be and is not. */
export function encrypt(draft: Draft, node: NodeTables, at: WalkPlace): Ending | undefined {
  const { net, packet } = draft
  const { encryption, encryptsNodes } = net.path
  if (encryption === 'none') return undefined
  const own = node.lxc(packet.source).row
  const isPod = own !== undefined && (own.flags & hostFlag) === 0
  const { row, lookup } = node.ipcache(packet.destination)
  const peer =
    row?.tunnel ?? (encryptsNodes && row !== undefined && isRemoteNode(row.identity) ? packet.destination : undefined)
  if (row === undefined || peer === undefined || !(isPod || encryptsNodes)) return notEncrypted(draft, at)
  if (row.key === 0) return withoutKey(draft, at, { peer: net.nodeOfAddress(peer), lookup })
  const source = net.internalIp(node.name, peer.family)
  if (source === undefined)
    return unknown(draft, at, 'cilium.no-node-address', `${node.name} has no address towards ${printIp(peer)}`)
  const wrapping: Wrapping =
    encryption === 'wireguard'
      ? { kind: 'WireGuard', source, destination: peer, port: wireguardPort }
      : { kind: 'ESP', source, destination: peer }
  const { wrappings } = packet
  // IPsec encrypted the inner packet until 1.17, and the tunnel's since.
  const isInside = encryption === 'ipsec' && !isAtLeast(net.settings.policy.version, '1.18')
  draft.packet = { ...packet, wrappings: isInside ? [wrapping, ...wrappings] : [...wrappings, wrapping] }
  const how =
    encryption === 'wireguard'
      ? `redirected to cilium_wg0, which sends it to UDP port ${wireguardPort} of ${printIp(peer)}`
      : `marked 0x${row.key.toString(16)}e00 for the kernel’s transformation with key ${row.key}`
  tell(draft, at, [encryption === 'wireguard' ? 'encrypted by WireGuard' : 'encrypted by IPsec', how], {
    lookups: [lookup],
  })
  return undefined
}

type Peer = { readonly peer: string | undefined; readonly lookup: MapLookup }

/** No key in the row: the peer's CiliumNode tells none, or is not in the input. */
function withoutKey(draft: Draft, at: WalkPlace, { peer, lookup }: Peer): Ending | undefined {
  const isKnown = peer !== undefined && draft.net.cluster.ciliumNodes.has(peer)
  if (isKnown) {
    const why = `the row of the destination has no key: the CiliumNode of ${peer} tells none`
    tell(draft, at, ['left it unencrypted', why], { lookups: [lookup] })
    return notEncrypted(draft, at)
  }
  const sentence = `whether ${peer ?? 'the peer'} has a key to encrypt with is not known: the input has no CiliumNode of it`
  if (isStrict(draft)) return unknown(draft, at, 'cilium.encryption-unknown', sentence)
  draft.doubts.push({ code: 'cilium.encryption-unknown', sentence })
  return undefined
}

function isStrict({ net, packet }: Draft): boolean {
  const range = net.path.strictRange
  return range !== undefined && containsIp(range, packet.source) && containsIp(range, packet.destination)
}

function notEncrypted(draft: Draft, at: WalkPlace): Ending | undefined {
  const range = draft.net.path.strictRange
  if (range === undefined || !isStrict(draft)) return undefined
  const sentence = `strict mode lets nothing between pods of ${printPrefix(range)} leave unencrypted, and the row of the destination has no key`
  return drop(draft, at, 195, { sentence })
}

/** Takes the outermost wrapping off where it is one of encryption. */
export function decrypt(draft: Draft, node: NodeTables): boolean {
  const { wrappings } = draft.packet
  const outer = wrappings.at(-1)
  if (outer?.kind !== 'WireGuard' && outer?.kind !== 'ESP') return false
  const rest = wrappings.slice(0, -1)
  draft.packet = { ...draft.packet, wrappings: rest }
  const isWireguard = outer.kind === 'WireGuard'
  const at: WalkPlace = isWireguard
    ? { node: node.name, device: 'cilium_wg0', hook: 'WireGuard' }
    : { node: node.name, hook: 'XFRM', program: 'ESP' }
  tell(draft, at, ['decrypted', `it comes from ${printIp(outer.source)}${isWireguard ? '' : ', and is marked 0xd00'}`])
  return true
}
