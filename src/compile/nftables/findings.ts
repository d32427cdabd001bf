/** The finding codes of this room, with what each means. */
import type { Finding, FindingTable } from '#base/finding'
import { type Meta, refOf } from '#model/meta'

export const findingCodes = {
  'nftables.address-shared': {
    severity: 'warning',
    meaning:
      'Two Service ports have an address, protocol and port in common. The map of kube-proxy holds one of them: which one is chance.',
  },
  'nftables.no-node-port-address': {
    severity: 'warning',
    meaning:
      "No address takes node ports: none of the node's is known, or nodePortAddresses select none but loopback, which this mode does not serve.",
  },
  'nft.bad-rule': {
    severity: 'error',
    meaning: 'A rule of an nftables listing cannot be read, for instance because it was cut; it is left out.',
  },
  'nft.bad-line': {
    severity: 'error',
    meaning:
      'A line of an nftables listing, in the head of a table, chain, set or object, cannot be read; it is left out.',
  },
  'nft.bad-element': {
    severity: 'error',
    meaning: 'An element of an nftables set or map cannot be read; it is left out.',
  },
  'nft.bad-json': {
    severity: 'error',
    meaning: 'The text is not what `nft -j list ruleset` prints; nothing of it, or not this object, is used.',
  },
  'nft.unknown-object': {
    severity: 'warning',
    meaning: 'A table holds an object of a kind that Portolan does not know, of a newer nft; it is left out.',
  },
  'nft.cut': { severity: 'warning', meaning: 'An nftables listing ends before its braces close.' },
  'nft.terse': {
    severity: 'warning',
    meaning:
      'An nftables listing seems to leave out the elements of sets and maps, as nft -t does: chains that only these lead to are led to by nothing.',
  },
  'nft.cut-json': {
    severity: 'warning',
    meaning:
      'The JSON of an nftables listing ends before its brackets close. It tells chains before their rules, so a chain may look empty that is not.',
  },
  'nft.table-twice': {
    severity: 'warning',
    meaning: 'An nftables table is listed twice, from two moments; the later listing is used.',
  },
  'nft.foreign-lines': {
    severity: 'info',
    meaning: 'Lines that are not part of an nftables listing, such as a shell prompt, were passed over.',
  },
  'nft.include': {
    severity: 'warning',
    meaning: 'An nft script includes another file, whose rules are not known.',
  },
  'nft.iptables-nft': {
    severity: 'info',
    meaning: 'iptables-nft wrote a table: nft shows some of its matches and targets by name only, and no comments.',
  },
  'nft.missing-chain': {
    severity: 'warning',
    meaning: 'A chain or map leads to a chain that the listing does not hold.',
  },
  'nft.missing-set': { severity: 'warning', meaning: 'A rule looks into a set or map that the listing does not hold.' },
  'nft.loop': { severity: 'error', meaning: 'An nftables chain leads back to itself, which the kernel refuses.' },
} as const satisfies FindingTable

export type FindingCode = keyof typeof findingCodes

/** A finding about one Service. */
export function findingAt(meta: Meta, code: FindingCode, message: string): Finding {
  return { code, severity: findingCodes[code].severity, message, object: refOf(meta), origin: meta.origin }
}

/** A finding about a line of a listing, or about one entry of its JSON. */
export function nftFinding(
  code: FindingCode,
  told: {
    readonly message: string
    readonly file: string
    readonly line?: number
    readonly index?: string
    readonly hint?: string
  },
): Finding {
  const { message, file, line, index, hint } = told
  const origin = { file, ...(line !== undefined && { line }), ...(index !== undefined && { index }) }
  const finding = { code, severity: findingCodes[code].severity, message, origin }
  return hint === undefined ? finding : { ...finding, hint }
}
