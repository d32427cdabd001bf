/** Posted manifests become objects in audit mode, or the reasons why an API server would not take them. */
import { type Finding, printRef } from '#base/finding'
import { sha256Hex } from '#base/hash'
import { listOf } from '#base/text'
import { buildCluster } from '#manifests/build-cluster'
import { type Refusal as ManifestRefusal, parseManifestText } from '#manifests/parse-text'
import { isRecord, type RawObject } from '#manifests/text/raw-object'
import type { AuditObject } from '#store/audit-store'
import { ciliumSemantics } from '#trace/policy/cilium-semantics'
import type { FieldError } from '#wire/problem'
import { ciliumVersionOf } from './audit-worlds'

const kubernetesKinds = ['NetworkPolicy', 'AdminNetworkPolicy', 'BaselineAdminNetworkPolicy', 'ClusterNetworkPolicy']
const ciliumKinds = ['NetworkPolicy', 'CiliumNetworkPolicy', 'CiliumClusterwideNetworkPolicy']
/** What policies read beside pods. */
const contextKinds = ['Namespace', 'CiliumCIDRGroup']
const namespacedKinds = ['NetworkPolicy', 'CiliumNetworkPolicy']

export type ReadManifests = { readonly objects: readonly AuditObject[]; readonly errors: readonly FieldError[] }

/** `body` is text, or what JSON held. */
export function readAuditManifests(body: unknown, semantics: string): ReadManifests {
  const text = typeof body === 'string' ? body : body === null || body === undefined ? '' : JSON.stringify(body)
  const { value: raw, findings, refusal } = parseManifestText(text, 'body')
  if (refusal !== undefined) return refused([{ field: 'body', message: whyRefused(refusal) }])
  const built = buildCluster(raw)
  const cilium = ciliumVersionOf(semantics)
  const agent = cilium === undefined ? [] : ciliumSemantics(built.value, { version: cilium }).findings
  const errors = [
    ...raw.flatMap((object) => wrongKind(object, semantics)),
    ...twice(raw),
    ...[...findings, ...built.findings, ...agent].filter(({ severity }) => severity === 'error').map(errorOf),
  ]
  if (errors.length > 0) return refused(errors)
  return { objects: raw.map((object) => objectOf(object, semantics)), errors: [] }
}

/** The parser speaks of files. */
function whyRefused({ reason, message }: ManifestRefusal): string {
  if (reason === 'empty') return 'holds no object; send manifests, or an empty list ([]) for no policy'
  return message.startsWith('it ') ? message.slice('it '.length) : `cannot be read: ${message}`
}

/** Which of the two is meant cannot be told. */
function twice(raw: readonly RawObject[]): readonly FieldError[] {
  const seen = new Map<string, number | undefined>()
  return raw.flatMap((object) => {
    const key = keyText(objectOf(object, ''))
    const { line } = object.origin
    const isNew = !seen.has(key)
    const before = seen.get(key)
    seen.set(key, line)
    if (isNew) return []
    const place = line === undefined || before === undefined ? '' : `, in lines ${before} and ${line}`
    return [{ field: key.replace(/ \//, ' '), message: `is there twice${place}; leave one of them out` }]
  })
}

/** As many as anybody mends at a time. */
const mostErrors = 100

function refused(errors: readonly FieldError[]): ReadManifests {
  return { objects: [], errors: errors.slice(0, mostErrors) }
}

export function isAuditPolicy({ semantics }: Pick<AuditObject, 'semantics'>): boolean {
  return semantics !== ''
}

function wrongKind({ kind, value }: RawObject, semantics: string): readonly FieldError[] {
  const isCilium = ciliumVersionOf(semantics) !== undefined
  const known = isCilium ? ciliumKinds : kubernetesKinds
  if ([...known, ...contextKinds].includes(kind)) return []
  const field = [kind, textIn(value, 'name') ?? '', 'kind'].filter((part) => part !== '').join(' ')
  const others = isCilium ? kubernetesKinds : ciliumKinds
  if (!others.includes(kind)) {
    return [{ field, message: `must be a policy (${listOf(known)}), or ${listOf(contextKinds)} beside one` }]
  }
  const remedy = isCilium ? 'semantics=k8s' : 'semantics=cilium'
  return [
    {
      field,
      message: `is not among the policies that ${isCilium ? 'Cilium' : 'Kubernetes'} reads; put it with ${remedy}`,
    },
  ]
}

function errorOf({ object, path, message, hint, origin }: Finding): FieldError {
  const place = [object && printRef(object), path].filter((part) => part !== undefined && part !== '').join(' ')
  const line = origin?.line === undefined ? 'body' : `body line ${origin.line}`
  return { field: place === '' ? line : place, message: hint === undefined ? message : `${message}; ${hint}` }
}

function objectOf({ kind, apiVersion, value }: RawObject, semantics: string): AuditObject {
  const namespace = namespacedKinds.includes(kind) ? (textIn(value, 'namespace') ?? 'default') : ''
  const name = textIn(value, 'name') ?? ''
  return {
    kind,
    namespace,
    name,
    uid: textIn(value, 'uid') ?? madeUid(`${kind} ${namespace}/${name}`),
    semantics: contextKinds.includes(kind) ? '' : semantics,
    manifest: { ...value, kind, ...(apiVersion !== '' && { apiVersion }) },
  }
}

function textIn({ metadata }: RawObject['value'], field: string): string | undefined {
  const value = isRecord(metadata) ? metadata[field] : undefined
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** A policy that was never in a cluster has none: the same one each time that it is put. */
function madeUid(text: string): string {
  const hex = sha256Hex(text, 32)
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-')
}

function keyText({ kind, namespace, name }: AuditObject): string {
  return `${kind} ${namespace}/${name}`
}
