/** Whether an edge link may carry its service's policies: the gate between a tenant's service and a provider's attachment. */
import { keyOf } from '#model/meta'
import { type EdgeAttachment, type EdgeService, uidOf } from '#model/traffic-policy'

type Gate = (attachment: EdgeAttachment, service: EdgeService) => string | undefined

/** The first that is closed is told. */
const gates: readonly Gate[] = [askTermination, askIdentity, askSpec, askProvider]

/** Undefined where it is open. `service` is the one that the attachment names, if there is one. */
export function whyGateIsClosed(attachment: EdgeAttachment, service: EdgeService | undefined): string | undefined {
  const { spec } = attachment
  if (spec === undefined) return cannotBeRead('EdgeAttachment', attachment)
  if (!isAdmitted(attachment)) return notAdmitted(attachment, admissionOf(attachment)?.message)
  const { namespace, name } = spec.serviceRef
  if (service === undefined)
    return `there is no EdgeService ${namespace}/${name}; create it, or correct the serviceRef of EdgeAttachment ${keyOf(attachment.meta)}`
  for (const gate of gates) {
    const closed = gate(attachment, service)
    if (closed !== undefined) return closed
  }
  return undefined
}

export function isAdmitted(attachment: EdgeAttachment): boolean {
  return admissionOf(attachment)?.status === 'True'
}

function admissionOf({ status }: EdgeAttachment) {
  return status?.conditions?.find(({ type }) => type === 'Admitted')
}

function notAdmitted({ meta, unreadStatus: [unread] = [] }: EdgeAttachment, why = ''): string {
  const reason = unread === undefined ? why : `its status cannot be read: ${unread.path}: ${unread.message}`
  const because = reason === '' ? '' : ` (${reason})`
  return `EdgeAttachment ${keyOf(meta)} is not Admitted${because}; whoever admits attachments has to set that condition to True`
}

function cannotBeRead(kind: string, { meta, problems }: Pick<EdgeService, 'meta' | 'problems'>): string {
  const why = problems.map(({ path, message, hint }) => `${path}: ${message}; ${hint}`).join('; ')
  return `${kind} ${keyOf(meta)} cannot be read: ${why === '' ? 'it has no spec; write one' : why}`
}

function askTermination(_: EdgeAttachment, { meta }: EdgeService): string | undefined {
  return meta.deletionTimestamp === undefined
    ? undefined
    : `EdgeService ${keyOf(meta)} is being deleted; delete the attachment as well, or make the service anew and admit the attachment to it`
}

/** By the UID that the attachment names, and by the one that it was admitted to. */
function askIdentity({ spec, status }: EdgeAttachment, { meta }: EdgeService): string | undefined {
  const known = [spec?.serviceRef.uid, status?.serviceUid].filter((uid) => uid !== undefined)
  if (known.every((uid) => uid === uidOf(meta))) return undefined
  return `EdgeService ${keyOf(meta)} is another one of that name than the attachment was admitted to; admit it anew, or correct serviceRef.uid`
}

function askSpec(_: EdgeAttachment, service: EdgeService): string | undefined {
  return service.spec === undefined ? cannotBeRead('EdgeService', service) : undefined
}

/** A provider without a namespace is one of the service's own. */
function askProvider({ meta, spec }: EdgeAttachment, service: EdgeService): string | undefined {
  const granted = service.spec?.providerRef
  const isGranted =
    granted?.name === spec?.providerRef.name && (granted?.namespace ?? service.meta.namespace) === meta.namespace
  if (isGranted) return undefined
  return `EdgeService ${keyOf(service.meta)} grants ${granted?.namespace ?? service.meta.namespace}/${granted?.name}, not ${meta.namespace}/${spec?.providerRef.name}; correct the providerRef of the service or of the attachment`
}
