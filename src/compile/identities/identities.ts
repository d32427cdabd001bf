/**
 * The identities of a cluster: one number for each set of labels that pods have. CiliumIdentity objects in the input tell
 * the numbers; other sets are numbered from the cluster's first in the order of their printed labels, where Cilium would draw at random.
 */
import { compareText } from '#base/text'
import { type LabelSet, printLabelSet } from './label'
import { firstClusterNumber, identityNumbers, type ReservedName, reservedLabels, reservedNames } from './numbers'

export type Identity = {
  readonly number: number
  readonly labels: LabelSet
  /** Taken from a CiliumIdentity or CiliumEndpoint of the input rather than numbered by Portolan. */
  readonly isGiven: boolean
}

export type GivenIdentity = { readonly number: number; readonly labels: LabelSet }

/** By the printed set of labels. */
export type IdentityTable = ReadonlyMap<string, Identity>

/** Of two given numbers for one set the lower one counts. Numbers beyond the range of pods are taken as they are given. */
export function allocateIdentities(
  sets: Iterable<LabelSet>,
  given: readonly GivenIdentity[] = [],
  first = firstClusterNumber,
): IdentityTable {
  const table = new Map<string, Identity>()
  for (const one of [...given].sort((a, b) => a.number - b.number)) {
    const key = printLabelSet(one.labels)
    if (!table.has(key)) table.set(key, { ...one, isGiven: true })
  }
  const taken = new Set(given.map(({ number }) => number))
  const open = new Map<string, LabelSet>()
  for (const labels of sets) {
    const key = printLabelSet(labels)
    if (!table.has(key)) open.set(key, labels)
  }
  let number = first
  for (const key of [...open.keys()].sort(compareText)) {
    while (taken.has(number)) number++
    const labels = open.get(key)
    if (labels !== undefined) table.set(key, { number: number++, labels, isGiven: false })
  }
  return table
}

export function reservedIdentity(name: ReservedName): Identity {
  return { number: identityNumbers[name], labels: reservedLabels(name), isGiven: false }
}

/** Those that a selector can meet, in the order of their numbers; `unknown` is nobody's. */
export function reservedIdentities(isDualStack: boolean): readonly Identity[] {
  return reservedNames
    .filter((name) => name !== 'unknown' && (isDualStack || !name.startsWith('world-')))
    .map(reservedIdentity)
}
