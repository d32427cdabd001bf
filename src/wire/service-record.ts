/** A Service as the compatible paths write it, one record for each address, and what is kept of its manifest. */
import Type, { type Static } from 'typebox'
import type { Labels, ServiceAddressKind } from '#flows/holder'
import { type Instant, parseInstant, printNaive } from '#flows/instant'
import { labelsOf, objectIn, textIn, withoutManagedFields } from './pod-record'
import { isJsonObject, isPort, type JsonObject, nullableObject, nullableText } from './schema-parts'
import { blankAsNull } from './traffic-row'

export const PostedService = Type.Object(
  {
    svc_ip: Type.String({ description: 'blank or None: nothing is stored' }),
    svc_name: Type.Optional(nullableText('the manifest’s when absent')),
    svc_namespace: Type.Optional(nullableText('the manifest’s when absent')),
    service_spec: Type.Optional(nullableObject('the manifest; status and managedFields are not kept')),
    time_stamp: Type.Optional(nullableText('when the sender saw the Service, UTC')),
  },
  { description: 'One address of a Service.' },
)

export const ServiceRecord = Type.Object(
  {
    svc_ip: Type.String(),
    svc_name: nullableText('its name'),
    svc_namespace: nullableText('its namespace'),
    service_spec: nullableObject('what is kept of its manifest'),
    time_stamp: Type.String({ description: 'when it was last reported, UTC' }),
  },
  { description: 'One address of a Service.' },
)

export const PostedDeletion = Type.Object(
  {
    namespace: Type.String({ minLength: 1 }),
    name: Type.String({ minLength: 1 }),
    uid: Type.Optional(Type.String({ minLength: 1, description: 'this Service and no later one of its name' })),
  },
  { description: 'A Service that is no more.' },
)

export type PostedService = Static<typeof PostedService>
export type ServiceRecord = Static<typeof ServiceRecord>
export type PostedDeletion = Static<typeof PostedDeletion>

type AddressKind = Exclude<ServiceAddressKind, 'node-port'>

export type ReadService = {
  readonly namespace: string
  readonly name: string
  readonly uid: string | null
  readonly addresses: readonly { readonly address: string; readonly kind: AddressKind }[]
  readonly isComplete: boolean
  readonly nodePorts: readonly { readonly protocol: string; readonly port: number }[]
  readonly labels: Labels | null
  readonly selector: Labels | null
  readonly createdAt: Instant | null
  readonly record: JsonObject | null
  readonly seenAt?: Instant
}

/** A headless Service and an ExternalName have no address that a packet could carry. */
export function hasServiceAddress({ svc_ip }: PostedService): boolean {
  const text = svc_ip.trim()
  return text !== '' && text !== 'None'
}

/** A post with a manifest tells every address; one without tells its own alone. */
export function readPostedService(post: PostedService): ReadService {
  const manifest = post.service_spec ?? null
  const metadata = objectIn(manifest, 'metadata')
  const spec = objectIn(manifest, 'spec')
  const seenAt = parseInstant(post.time_stamp?.trim() ?? '')
  return {
    namespace: blankAsNull(post.svc_namespace) ?? textIn(metadata, 'namespace') ?? '',
    name: blankAsNull(post.svc_name) ?? textIn(metadata, 'name') ?? '',
    uid: textIn(metadata, 'uid'),
    addresses: [{ address: post.svc_ip, kind: 'cluster' }, ...addressesOf(spec, objectIn(manifest, 'status'))],
    isComplete: spec !== undefined,
    nodePorts: nodePortsOf(spec),
    labels: labelsOf(metadata?.labels),
    selector: labelsOf(spec?.selector),
    createdAt: parseInstant(textIn(metadata, 'creationTimestamp') ?? '') ?? null,
    record: compactService(manifest),
    ...(seenAt !== undefined && { seenAt }),
  }
}

function addressesOf(
  spec: JsonObject | undefined,
  status: JsonObject | undefined,
): readonly { readonly address: string; readonly kind: AddressKind }[] {
  const ingress = objectIn(status, 'loadBalancer')?.ingress
  const balanced = Array.isArray(ingress) ? ingress.filter(isJsonObject).map(({ ip }) => ip) : []
  return [
    ...textsIn([spec?.clusterIP, ...listIn(spec, 'clusterIPs')]).map((address) => ({
      address,
      kind: 'cluster' as const,
    })),
    ...textsIn(listIn(spec, 'externalIPs')).map((address) => ({ address, kind: 'external' as const })),
    ...textsIn(balanced).map((address) => ({ address, kind: 'load-balancer' as const })),
  ]
}

function nodePortsOf(spec: JsonObject | undefined): readonly { readonly protocol: string; readonly port: number }[] {
  return listIn(spec, 'ports')
    .filter(isJsonObject)
    .flatMap(({ nodePort, protocol }) =>
      isPort(nodePort) && nodePort > 0
        ? [{ protocol: typeof protocol === 'string' ? protocol : 'TCP', port: nodePort }]
        : [],
    )
}

function listIn(object: JsonObject | undefined, field: string): readonly unknown[] {
  const value = object?.[field]
  return Array.isArray(value) ? value : []
}

function textsIn(values: readonly unknown[]): readonly string[] {
  return values.filter((value): value is string => typeof value === 'string' && value.trim() !== '' && value !== 'None')
}

function compactService(manifest: JsonObject | null): JsonObject | null {
  if (manifest === null) return null
  const { status: _status, metadata, ...kept } = manifest
  return { ...(isJsonObject(metadata) ? { metadata: withoutManagedFields(metadata) } : {}), ...kept }
}

export type PrintableService = {
  readonly namespace: string
  readonly name: string
  readonly record: unknown
  readonly lastSeen: Instant
}

export function printServiceRecord(service: PrintableService, address: string): ServiceRecord {
  return {
    svc_ip: address,
    svc_name: blankAsNull(service.name),
    svc_namespace: blankAsNull(service.namespace),
    service_spec: isJsonObject(service.record) ? service.record : null,
    time_stamp: printNaive(service.lastSeen),
  }
}
