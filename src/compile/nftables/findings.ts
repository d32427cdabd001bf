/** The finding codes of this room, with what each means. */
import type { Finding, Severity } from '#base/finding'
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
} as const satisfies Readonly<Record<string, { readonly severity: Severity; readonly meaning: string }>>

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
