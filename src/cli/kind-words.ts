/** Kinds as kubectl takes them: in any case, of one or many, and by their short names. */
import type { WorkloadKind } from '#model/workload'

const kindWords: Readonly<Record<string, WorkloadKind | 'Service' | 'Pod'>> = {
  po: 'Pod',
  pod: 'Pod',
  pods: 'Pod',
  svc: 'Service',
  service: 'Service',
  services: 'Service',
  deploy: 'Deployment',
  deployment: 'Deployment',
  deployments: 'Deployment',
  rs: 'ReplicaSet',
  replicaset: 'ReplicaSet',
  replicasets: 'ReplicaSet',
  sts: 'StatefulSet',
  statefulset: 'StatefulSet',
  statefulsets: 'StatefulSet',
  ds: 'DaemonSet',
  daemonset: 'DaemonSet',
  daemonsets: 'DaemonSet',
  job: 'Job',
  jobs: 'Job',
  cj: 'CronJob',
  cronjob: 'CronJob',
  cronjobs: 'CronJob',
}

export function kindOf(word: string): WorkloadKind | 'Service' | 'Pod' | undefined {
  const key = word.toLowerCase()
  return Object.hasOwn(kindWords, key) ? kindWords[key] : undefined
}
