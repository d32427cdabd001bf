/** Kinds of policies that are generated, and the name of the one of a workload. */
import { sha256Hex } from '#base/hash'
import type { Workload } from '#flows/holder'

export type PolicyKind = 'networkpolicy' | 'ciliumnetworkpolicy'

/** The same on every run, so that a later one takes the place of an earlier one; names end at 253 characters. */
export function policyName({ name, kind }: Workload): string {
  const whole = `${name}-${kind.toLowerCase()}`
  return whole.length <= 253 ? whole : `${whole.slice(0, 244)}-${sha256Hex(whole, 8)}`
}
