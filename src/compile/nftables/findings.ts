/** The finding codes of this room, with what each means. */
import type { Finding, Severity } from '#base/finding'
import { type Meta, refOf } from '#model/meta'

export const findingCodes = {
  'nftables.address-shared': {
    severity: 'warning',
    meaning:
      'Two Service ports have an address, protocol and port in common. The map of kube-proxy holds one of them: which one is chance.',
  },
} as const satisfies Readonly<Record<string, { readonly severity: Severity; readonly meaning: string }>>

export type FindingCode = keyof typeof findingCodes

/** A finding about one Service. */
export function findingAt(meta: Meta, code: FindingCode, message: string): Finding {
  return { code, severity: findingCodes[code].severity, message, object: refOf(meta), origin: meta.origin }
}
