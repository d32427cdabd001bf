/** What no database keeps of a report: control characters, texts without end, manifests nested without end. */
import { complainOfText } from '#flows/check-flow'
import type { PostedDeath, ReadPod } from './pod-record'
import type { FieldError } from './problem'
import { isJsonObject } from './schema-parts'
import type { PostedDeletion, ReadService } from './service-record'

type Texts = string | null | undefined | readonly string[]

/** Objects of an API server are a dozen levels deep; recursion over them has no bound of its own. */
const mostLevels = 100

export function checkPod(pod: ReadPod): readonly FieldError[] {
  return [
    ...checkTexts({
      pod_name: pod.name,
      pod_namespace: pod.namespace,
      pod_ips: pod.addresses,
      node_name: pod.nodeName,
      pod_identity: pod.identity,
      workload_kind: pod.workload?.kind,
      workload_name: pod.workload?.name,
      'pod_obj.metadata.uid': pod.uid,
      'pod_obj.status.hostIPs': pod.hostAddresses,
    }),
    ...checkDepth('pod_obj', pod.record),
  ]
}

export function checkService(service: ReadService): readonly FieldError[] {
  return [
    ...checkTexts({
      svc_name: service.name,
      svc_namespace: service.namespace,
      svc_ip: service.addresses.map(({ address }) => address),
      'service_spec.metadata.uid': service.uid,
      'service_spec.spec.ports': service.nodePorts.map(({ protocol }) => protocol),
    }),
    ...checkDepth('service_spec', service.record),
  ]
}

export function checkDeath({ pod_name, pod_ip, pod_namespace, pod_uid }: PostedDeath): readonly FieldError[] {
  return checkTexts({ pod_name, pod_ip, pod_namespace, pod_uid })
}

export function checkDeletion({ namespace, name, uid }: PostedDeletion): readonly FieldError[] {
  return checkTexts({ namespace, name, uid })
}

function checkTexts(named: Readonly<Record<string, Texts>>): readonly FieldError[] {
  return Object.entries(named).flatMap(([field, texts]) => {
    const message = [texts ?? []]
      .flat()
      .map(complainOfText)
      .find((one) => one !== undefined)
    return message === undefined ? [] : [{ field: `body.${field}`, message }]
  })
}

function checkDepth(field: string, record: unknown): readonly FieldError[] {
  if (!isDeeper(record, mostLevels)) return []
  return [{ field: `body.${field}`, message: `is nested more than ${mostLevels} levels deep` }]
}

function isDeeper(value: unknown, levels: number): boolean {
  const parts = Array.isArray(value) ? value : isJsonObject(value) ? Object.values(value) : []
  return levels === 0 ? parts.length > 0 : parts.some((part) => isDeeper(part, levels - 1))
}
