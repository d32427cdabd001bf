/** The labels a pod's identity is made of. Mirrors pkg/k8s/utils SanitizePodLabels and pkg/labelsfilter, Cilium 1.18. */
import type { Labels } from '#model/meta'
import {
  clusterKey,
  type Label,
  type LabelSet,
  labelSet,
  namespaceKey,
  namespaceLabelPrefix,
  serviceAccountKey,
} from './label'
import { isIdentityLabel, type LabelFilter } from './label-filter'

export type PodLabelling = {
  readonly namespace: string
  readonly podLabels: Labels
  readonly namespaceLabels: Labels
  readonly serviceAccount?: string
  readonly clusterName: string
}

export function podLabelSet(pod: PodLabelling, filter: LabelFilter): LabelSet {
  return labelSet(allPodLabels(pod).filter((label) => isIdentityLabel(label, filter)))
}

/** A pod cannot set the keys that Cilium sets itself. */
function allPodLabels({ namespace, podLabels, namespaceLabels, serviceAccount, clusterName }: PodLabelling): Label[] {
  const values = new Map<string, string>(Object.entries(podLabels))
  for (const [key, value] of Object.entries(namespaceLabels)) values.set(`${namespaceLabelPrefix}${key}`, value)
  values.set(namespaceKey, namespace)
  values.set(serviceAccountKey, serviceAccount === undefined || serviceAccount === '' ? 'default' : serviceAccount)
  values.set(clusterKey, clusterName)
  return [...values].map(([key, value]) => ({ source: 'k8s', key, value }))
}
