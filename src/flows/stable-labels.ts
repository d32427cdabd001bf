/** Stable labels: those that every replica of a workload has and that outlive a roll-out. */
import type { Labels } from './holder'

/**
 * Labels of one revision, one replica or one place. The first six are those that Inspektor Gadget's policy advisor leaves out;
 * the others name a Job, a pod of a StatefulSet or an index.
 */
const passing: ReadonlySet<string> = new Set([
  'controller-revision-hash',
  'pod-template-generation',
  'pod-template-hash',
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'controller-uid',
  'job-name',
  'statefulset.kubernetes.io/pod-name',
  'apps.kubernetes.io/pod-index',
  'kubernetes.io/hostname',
])
const passingPrefixes = ['batch.kubernetes.io/', 'topology.kubernetes.io/'] as const

/** In the order of their keys, so that equal sets print equally. */
export function stableLabels(labels: Labels): Labels {
  const kept = Object.entries(labels).filter(
    ([key]) => !passing.has(key) && !passingPrefixes.some((prefix) => key.startsWith(prefix)),
  )
  return Object.fromEntries(kept.sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0)))
}
