/** How many audits of recorded flows may run at once: each reads many rows, and ingest goes first. */

export type AuditSlots = {
  readonly available: () => number
  /** Undefined when none is left; the answer gives it back. */
  readonly take: () => (() => void) | undefined
}

export function auditSlots(most: number): AuditSlots {
  let taken = 0
  return {
    available: () => most - taken,
    take: () => {
      if (taken >= most) return undefined
      taken++
      return () => {
        taken--
      }
    },
  }
}
