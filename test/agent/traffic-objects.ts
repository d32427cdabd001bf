/** Manifests of traffic policies and what they are bound to, by the few fields that a test is about. */
import type { RawRecord } from '#manifests/text/raw-object'

const apiVersion = 'portolan.dev/v1alpha1'

type Rule = { readonly name: string; readonly action: 'Allow' | 'Deny'; readonly match?: RawRecord }

export const echo: Rule = { name: 'echo', action: 'Allow', match: { protocols: ['ICMP'] } }
export const rest: Rule = { name: 'rest', action: 'Deny' }

export type PolicyFields = {
  readonly uid?: string
  readonly generation?: number
  readonly rules?: readonly Rule[]
  readonly namespace?: string
  readonly labels?: RawRecord
}

export function policy(name: string, fields: PolicyFields = {}): RawRecord {
  const { uid = `uid-${name}`, generation = 1, rules = [echo], namespace = 'tenant', labels } = fields
  return {
    apiVersion,
    kind: 'TrafficPolicy',
    metadata: { namespace, name, uid, generation, ...(labels !== undefined && { labels }) },
    spec: { rules },
  }
}

export type BindingFields = {
  readonly ingress?: string
  readonly egress?: string
  readonly attachment?: string
  readonly generation?: number
  readonly created?: string
}

export function binding(name: string, fields: BindingFields = {}): RawRecord {
  const { ingress, egress, attachment = name, generation = 3, created = '2026-10-01T00:00:00Z' } = fields
  return {
    apiVersion,
    kind: 'TrafficPolicyBinding',
    metadata: { namespace: 'tenant', name, uid: `uid-binding-${name}`, generation, creationTimestamp: created },
    spec: {
      vpcAttachmentRef: { name: attachment },
      ...(ingress !== undefined && { ingressPolicyRef: { name: ingress } }),
      ...(egress !== undefined && { egressPolicyRef: { name: egress } }),
    },
  }
}

export type AttachmentFields = { readonly node?: string; readonly device?: string; readonly namespace?: string }

export function attachment(name: string, fields: AttachmentFields = {}): RawRecord {
  const { node = 'n1', device, namespace = 'tenant' } = fields
  return {
    apiVersion,
    kind: 'VPCAttachment',
    metadata: { namespace, name, uid: `uid-attachment-${namespace}-${name}` },
    spec: { vpc: { name: 'blue' } },
    status: { node, ...(device !== undefined && { hostInterface: device }) },
  }
}

export type ServiceFields = {
  readonly uid?: string
  readonly ingress?: string
  readonly egress?: string
  readonly provider?: string
  readonly isDeleting?: boolean
}

/** In the tenant's namespace, granting `provider/dns` unless told otherwise. */
export function edgeService(name: string, fields: ServiceFields = {}): RawRecord {
  const { uid = `uid-service-${name}`, ingress, egress, provider = 'dns', isDeleting = false } = fields
  return {
    apiVersion,
    kind: 'EdgeService',
    metadata: { namespace: 'tenant', name, uid, ...(isDeleting && { deletionTimestamp: '2026-10-15T11:00:00Z' }) },
    spec: {
      providerRef: { namespace: 'provider', name: provider },
      vpcRef: { name: 'blue' },
      trafficPolicy: {
        ...(ingress !== undefined && { ingressPolicyRef: { name: ingress } }),
        ...(egress !== undefined && { egressPolicyRef: { name: egress } }),
      },
    },
  }
}

export type EdgeFields = { readonly device: string; readonly isAdmitted?: boolean; readonly serviceUid?: string }

export function edgeAttachment(name: string, service: string, fields: EdgeFields): RawRecord {
  const { device, isAdmitted = true, serviceUid } = fields
  const admitted = {
    type: 'Admitted',
    status: isAdmitted ? 'True' : 'False',
    reason: 'Granted',
    message: '',
    lastTransitionTime: '2026-10-15T11:00:00Z',
  }
  return {
    apiVersion,
    kind: 'EdgeAttachment',
    metadata: { namespace: 'provider', name, uid: `uid-edge-${name}` },
    spec: { serviceRef: { namespace: 'tenant', name: service }, providerRef: { name: 'dns' } },
    status: {
      node: 'n1',
      hostInterface: device,
      conditions: [admitted],
      ...(serviceUid !== undefined && { serviceUid }),
    },
  }
}
