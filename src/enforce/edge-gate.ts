/** Whether an edge link may carry its service's policies: the gate between a tenant's service and a provider's attachment. */
import { keyOf } from '#model/meta'
import { type EdgeAttachment, type EdgeService, uidOf } from '#model/traffic-policy'

type Gate = (attachment: EdgeAttachment, service: EdgeService) => string | undefined

/** The first that is closed is told. */
const gates: readonly Gate[] = [askTermination, askIdentity, askSpec, askProvider]

/** Undefined where it is open. `service` is the one that the attachment names, if there is one. */
export function whyGateIsClosed(attachment: EdgeAttachment, service: EdgeService | undefined): string | undefined {
  const { spec, status } = attachment
  if (spec === undefined) return 'the attachment cannot be read'
  const admitted = status?.conditions?.find(({ type }) => type === 'Admitted')
  if (admitted?.status !== 'True') return 'the attachment is not Admitted'
  const { namespace, name } = spec.serviceRef
  if (service === undefined) return `there is no EdgeService ${namespace}/${name}`
  for (const gate of gates) {
    const closed = gate(attachment, service)
    if (closed !== undefined) return closed
  }
  return undefined
}

function askTermination(_: EdgeAttachment, { meta }: EdgeService): string | undefined {
  return meta.deletionTimestamp === undefined ? undefined : `EdgeService ${keyOf(meta)} is being deleted`
}

/** By the UID that the attachment names, and by the one that it was admitted to. */
function askIdentity({ spec, status }: EdgeAttachment, { meta }: EdgeService): string | undefined {
  const known = [spec?.serviceRef.uid, status?.serviceUid].filter((uid) => uid !== undefined)
  if (known.every((uid) => uid === uidOf(meta))) return undefined
  return `EdgeService ${keyOf(meta)} is another one of that name than the attachment was admitted to`
}

function askSpec(_: EdgeAttachment, { meta, spec }: EdgeService): string | undefined {
  return spec === undefined ? `EdgeService ${keyOf(meta)} cannot be read` : undefined
}

/** A provider without a namespace is one of the service's own. */
function askProvider({ meta, spec }: EdgeAttachment, service: EdgeService): string | undefined {
  const granted = service.spec?.providerRef
  const isGranted =
    granted?.name === spec?.providerRef.name && (granted?.namespace ?? service.meta.namespace) === meta.namespace
  if (isGranted) return undefined
  return `EdgeService ${keyOf(service.meta)} grants ${granted?.namespace ?? service.meta.namespace}/${granted?.name}, not ${meta.namespace}/${spec?.providerRef.name}`
}
