/** What the controller says of an object: the body of its server-side apply, and the file that stands for it. */
import { readValue } from '#manifests/kinds/read-value'
import { isRecord } from '#manifests/text/raw-object'
import { conditionsSchema, type JudgedKind, judgedKinds } from '#model/condition-schema'
import { type Problem, trafficGroup, trafficKinds, trafficVersion } from '#model/traffic-policy'
import type { TrafficPolicyBindingStatus } from '#model/traffic-policy-binding-schema'

export const controllerFieldManager = 'portolan-controller'

type Conditions = NonNullable<TrafficPolicyBindingStatus['conditions']>

export type ConditionPatch = {
  readonly apiVersion: string
  readonly kind: JudgedKind
  readonly metadata: {
    readonly namespace: string
    readonly name: string
    /** The object that is judged; another one of its name is none of these conditions'. */
    readonly uid?: string
  }
  readonly status: { readonly conditions: Conditions }
}

type Named = { readonly namespace: string; readonly name: string; readonly uid?: string }

export function printConditionPatch(
  kind: JudgedKind,
  { namespace, name, uid }: Named,
  conditions: Conditions,
): ConditionPatch {
  return {
    apiVersion: `${trafficGroup}/${trafficVersion}`,
    kind,
    metadata: { namespace, name, ...(uid !== undefined && { uid }) },
    status: { conditions },
  }
}

/** Below the status folder: `portolan-controller/PLURAL/NAMESPACE/NAME.json`. */
export function conditionFilePath({ kind, metadata }: Pick<ConditionPatch, 'kind' | 'metadata'>): string {
  const plural = trafficKinds.find((one) => one.kind === kind)?.plural ?? ''
  return `${controllerFieldManager}/${plural}/${metadata.namespace}/${metadata.name}.json`
}

/** A name is part of a path: it must not lead elsewhere. */
function isFileName(name: unknown): name is string {
  return typeof name === 'string' && name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name)
}

export type ConditionReading =
  | { readonly kind: 'patch'; readonly patch: ConditionPatch }
  | { readonly kind: 'refused'; readonly problems: readonly Problem[] }

/** `value` is what JSON.parse made of a file. */
export function readConditionPatch(value: unknown): ConditionReading {
  const { kind, metadata, status } = isRecord(value) ? value : {}
  const { namespace, name, uid } = isRecord(metadata) ? metadata : {}
  const judged = judgedKinds.find((one) => one === kind)
  if (judged === undefined || !isFileName(namespace) || !isFileName(name)) {
    const message = 'it names no object that the controller judges'
    return { kind: 'refused', problems: [{ path: 'metadata', message, hint: 'delete the file' }] }
  }
  const told: Problem[] = []
  const given = isRecord(status) ? status.conditions : undefined
  const conditions = readValue(conditionsSchema, given, 'status.conditions', { told, isStrict: false })
  if (told.length > 0) return { kind: 'refused', problems: told }
  const object = { namespace, name, ...(typeof uid === 'string' && { uid }) }
  return { kind: 'patch', patch: printConditionPatch(judged, object, conditions as Conditions) }
}
