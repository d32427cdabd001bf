/** Answers of backends get back the frontend's address. Mirrors nodeport_rev_dnat of bpf/lib/nodeport.h and lb4_rev_nat of bpf/lib/lb.h, Cilium 1.16 to 1.19. */
import { printEndpoint, printIp } from '#base/ip'
import { isAtLeast } from '#model/cilium-version'
import type { WalkPlace } from '#model/walk'
import { isIcmp, reversePacket, rewritePlace, rewriteSource } from './flow-packet'
import type { NodeTables } from './node-tables'
import { ctFlags } from './state-rows'
import { ctTable, nodePortRow, tupleText } from './state-tables'
import { type Draft, stateOf, tellRewrite } from './walk-draft'

/** By the row that the node port or DSR left for the client's packet. False where there is none. */
export function reverseFromBackend(draft: Draft, node: NodeTables, at: WalkPlace): boolean {
  const row = nodePortRow(stateOf(draft, node), reversePacket(draft.packet))
  if (row === undefined) return false
  const tracked = {
    map: ctTable(row),
    key: tupleText(row),
    value: (row.flags & ctFlags.dsr) !== 0 ? 'DSR' : `NodePort RevNAT=${row.revNat}`,
  }
  if ((row.flags & ctFlags.dsr) !== 0 && row.nat !== undefined) {
    const told = isAtLeast(node.maps.settings.policy.version, '1.18') ? 'the connection’s row' : 'the SNAT row'
    const why = `${told} keeps what the client sent to: ${printEndpoint(printIp(row.nat.ip), row.nat.port)}`
    tellRewrite(draft, at, ['restored the frontend', why], {
      ...rewriteSource(draft.packet, row.nat, rewritePlace(at)),
      lookups: [tracked],
    })
    if (at.hook !== 'xdp') draft.packet = { ...draft.packet, mark: 0x300 }
    return true
  }
  return reverseByNumber(draft, node, at, { revNat: row.revNat, lookups: [tracked] })
}

type Numbered = {
  readonly revNat: number
  readonly lookups?: readonly { readonly map: string; readonly key: string; readonly value?: string }[]
}

/** By the number of the reverse translation that a connection's row has. */
export function reverseByNumber(
  draft: Draft,
  node: NodeTables,
  at: WalkPlace,
  { revNat, lookups = [] }: Numbered,
): boolean {
  const { row, lookup } = node.reverseNat(revNat, draft.packet.source)
  if (row === undefined) return false
  // Errors have addresses alone, and what they carry inside is left as the backend saw it.
  const to = isIcmp(draft.packet.protocol) ? { ip: row.ip, port: draft.packet.sourcePort } : row
  const written = rewriteSource(draft.packet, to, rewritePlace(at))
  tellRewrite(draft, at, ['restored the frontend', 'the client gets its answer from where it sent to'], {
    ...written,
    lookups: [...lookups, lookup],
  })
  return true
}
