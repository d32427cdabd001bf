/** Reading metadata: an object's name, namespace, labels, annotations and owners. */

import { manifestFinding } from '#manifests/findings'
import { hashText, printHash } from '#manifests/hash-text'
import type { Labels, Meta, OwnerReference } from '#model/meta'
import {
  type Fields,
  flagAt,
  has,
  mapAt,
  mapsAt,
  nameAt,
  plainNameAt,
  report,
  reportImpossible,
  wrongType,
} from './fields'
import { explainBadName, isImpossibleName } from './names'
import type { Writable } from './writable'

const noLabels: Labels = {}
const noOwners: readonly OwnerReference[] = []
const nothingAssumed: readonly string[] = []

/** Undefined, with a finding, for an object that has no name, or one that no cluster can hold. */
export function parseMeta(root: Fields, isNamespaced: boolean): Meta | undefined {
  const fields = mapAt(root, 'metadata')
  const { reading } = root
  const namespace = isNamespaced ? (nameAt(fields, 'namespace') ?? 'default') : ''
  const generateName = nameAt(fields, 'generateName')
  const name = nameAt(fields, 'name') ?? nameFrom(generateName, root)
  if (name === undefined) {
    reportNoName(root)
    return undefined
  }
  const impossible = isImpossibleName(name) ? nameKey(fields) : isImpossibleName(namespace) ? 'namespace' : undefined
  if (impossible !== undefined) {
    reportImpossible(fields, impossible, `the ${reading.kind} is left out`)
    return undefined
  }
  reading.namespace = namespace
  reading.name = name
  const meta: Writable<Meta> = {
    kind: reading.kind,
    name,
    namespace: reading.namespace,
    labels: labelsAt(fields, 'labels'),
    annotations: annotationsAt(fields),
    ownerReferences: parseOwners(fields),
    origin: reading.origin,
    assumed: has(fields, 'name') ? nothingAssumed : ['metadata.name'],
  }
  if (generateName !== undefined) meta.generateName = generateName
  fillTexts(fields, meta)
  checkName(fields, meta)
  return meta
}

function nameKey(fields: Fields): string {
  return has(fields, 'name') ? 'name' : 'generateName'
}

/** Labels and selectors. A value that is no text is told; a number or truth value is then read as its text. */
export function labelsAt(fields: Fields, key: string): Labels {
  const value = fields.values[key]
  if (value === undefined || value === null) return noLabels
  const map = mapAt(fields, key)
  for (const label in map.values) {
    const text = map.values[label]
    if (typeof text !== 'string' || text.length > 63) return mendLabels(map)
  }
  return map.values as Labels
}

function mendLabels(map: Fields): Labels {
  const labels: Record<string, string> = {}
  for (const [label, value] of Object.entries(map.values)) {
    if (typeof value === 'string') {
      labels[label] = value
      if (value.length > 63) reportLongLabel(map, label, value)
    } else if (value === null) labels[label] = ''
    else if (typeof value === 'number' || typeof value === 'boolean') {
      labels[label] = String(value)
      const message = `${value} stands where text is wanted; it is read as "${value}"`
      report(map, label, { code: 'manifest.bad-label', message, hint: `put it in quotes: "${value}"` })
    } else {
      report(map, label, { code: 'manifest.bad-label', message: wrongType(value, 'text') })
    }
  }
  return labels
}

function reportLongLabel(map: Fields, label: string, value: string): void {
  const message = `the value has ${value.length} characters, where a label takes at most 63; it is used as it is`
  report(map, label, { code: 'manifest.bad-label', message, hint: 'shorten it' })
}

/** Annotations may be of any length; what is no text is told and left out. */
function annotationsAt(fields: Fields): Labels {
  const value = fields.values.annotations
  if (value === undefined || value === null) return noLabels
  const map = mapAt(fields, 'annotations')
  const isText = Object.values(map.values).every((text) => typeof text === 'string')
  if (isText) return map.values as Labels
  const annotations: Record<string, string> = {}
  for (const key of Object.keys(map.values)) {
    const text = nameAt(map, key)
    if (text !== undefined) annotations[key] = text
  }
  return annotations
}

function parseOwners(fields: Fields): readonly OwnerReference[] {
  const entries = mapsAt(fields, 'ownerReferences')
  if (entries.length === 0) return noOwners
  const owners: OwnerReference[] = []
  for (const entry of entries) {
    const kind = plainNameAt(entry, 'kind')
    const name = plainNameAt(entry, 'name')
    if (kind === undefined || name === undefined) {
      report(entry, '', { message: 'the owner has no kind or no name; it is left out' })
      continue
    }
    const owner: Writable<OwnerReference> = { kind, name }
    const uid = nameAt(entry, 'uid')
    const controller = flagAt(entry, 'controller')
    if (uid !== undefined) owner.uid = uid
    if (controller !== undefined) owner.controller = controller
    owners.push(owner)
  }
  return owners
}

function fillTexts(fields: Fields, meta: Writable<Meta>): void {
  const uid = nameAt(fields, 'uid')
  const deletionTimestamp = nameAt(fields, 'deletionTimestamp')
  const creationTimestamp = nameAt(fields, 'creationTimestamp')
  if (uid !== undefined) meta.uid = uid
  if (deletionTimestamp !== undefined) meta.deletionTimestamp = deletionTimestamp
  if (creationTimestamp !== undefined) meta.creationTimestamp = creationTimestamp
}

/** kubectl create gives such an object a name with five characters more; ours depend on where it stands. */
function nameFrom(generateName: string | undefined, { reading }: Fields): string | undefined {
  if (generateName === undefined) return undefined
  const { file, line = 0, index = '' } = reading.origin
  return generateName.slice(0, 58) + printHash(hashText(`${file} ${line} ${index}`), 5)
}

function checkName(fields: Fields, { kind, name, namespace }: Meta): void {
  const badName = explainBadName(kind, name)
  if (badName !== undefined) {
    report(fields, 'name', {
      code: 'manifest.bad-name',
      message: `the API server refuses this name: ${badName}`,
      hint: 'rename it',
    })
  }
  const badNamespace = namespace === '' ? undefined : explainBadName('Namespace', namespace)
  if (badNamespace !== undefined) {
    const message = `the API server refuses this name: ${badNamespace}`
    report(fields, 'namespace', { code: 'manifest.bad-name', message, hint: 'rename it' })
  }
}

function reportNoName({ reading, values }: Fields): void {
  const what = has({ reading, values, parent: undefined, key: '', index: -1 }, 'metadata')
    ? 'metadata.name'
    : 'metadata'
  reading.findings.push(
    manifestFinding('manifest.no-name', {
      message: `a ${reading.kind} has no ${what}, and is left out`,
      path: 'metadata.name',
      origin: reading.origin,
      hint: 'add metadata.name',
    }),
  )
}
