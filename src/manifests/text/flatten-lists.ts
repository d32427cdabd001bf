/** From the value of one document to the objects in it: a single object, an array, a List, or Lists inside Lists. */
import type { Finding, Origin } from '#base/finding'
import { manifestFinding } from '#manifests/findings'
import { describeValue, isRecord, type RawObject, type RawRecord } from './raw-object'

/** What is gathered from a text; `seenLists` keeps a List that YAML aliases repeat from being walked again. */
export type Gathered = {
  readonly objects: RawObject[]
  readonly findings: Finding[]
  readonly seenLists: Set<unknown>
}

/** What an item of a List inherits from it. */
type Inherited = { readonly kind: string; readonly apiVersion: string }

type Place = {
  readonly origin: Origin
  readonly inherited?: Inherited
  readonly depth: number
  readonly itemLines?: readonly number[]
}

const deepest = 20

/** `itemLines` are the lines of a List's items, where they are known; items that could not be read are undefined. */
export type DocumentContent = {
  readonly value: unknown
  readonly origin: Origin
  readonly itemLines?: readonly number[]
}

/** An empty document holds nothing, and says nothing. */
export function gatherObjects({ value, ...place }: DocumentContent, into: Gathered): void {
  if (value !== null && value !== undefined) gather(value, { ...place, depth: 0 }, into)
}

function gather(value: unknown, place: Place, into: Gathered): void {
  if (Array.isArray(value)) gatherItems({ items: value, name: '' }, place, into)
  else if (isRecord(value)) gatherRecord(value, place, into)
  else {
    into.findings.push(
      manifestFinding('manifest.not-an-object', {
        message: `${describeValue(value)} stands where a Kubernetes object is wanted, and is left out`,
        origin: place.origin,
        hint: 'give objects as kubectl get -o yaml or -o json prints them',
      }),
    )
  }
}

function gatherRecord(value: RawRecord, place: Place, into: Gathered): void {
  const kind = kindOf(value, place.inherited)
  const apiVersion = typeof value.apiVersion === 'string' ? value.apiVersion : (place.inherited?.apiVersion ?? '')
  if (kind === undefined) reportNoKind(value, place, into)
  else if (kind.endsWith('List') && isListValue(value)) gatherList(value, { kind, apiVersion }, place, into)
  else if (kind === 'Status' && value.status === 'Failure') reportStatus(value, place, into)
  else into.objects.push({ kind, apiVersion, value, origin: place.origin })
}

function kindOf(value: RawRecord, inherited: Inherited | undefined): string | undefined {
  if (typeof value.kind === 'string' && value.kind !== '') return value.kind
  return value.kind === undefined || value.kind === null ? inherited?.kind : undefined
}

/** `items` may be null, which Go writes for an empty list. */
function isListValue(value: RawRecord): boolean {
  return Array.isArray(value.items) || (value.items ?? undefined) === undefined
}

function gatherList(value: RawRecord, list: Inherited, place: Place, into: Gathered): void {
  if (place.inherited !== undefined || place.depth > 0) {
    into.findings.push(
      manifestFinding('manifest.nested-list', {
        message: `a ${list.kind} stands inside another list; its items are read as if they stood alone`,
        origin: place.origin,
      }),
    )
  }
  const kind = list.kind.slice(0, -'List'.length)
  const inherited = kind === '' ? undefined : { kind, apiVersion: list.apiVersion }
  const items = Array.isArray(value.items) ? value.items : []
  gatherItems({ items, name: 'items' }, { ...place, ...(inherited && { inherited }) }, into)
}

type Items = { readonly items: readonly unknown[]; readonly name: string }

function gatherItems({ items, name }: Items, place: Place, into: Gathered): void {
  if (into.seenLists.has(items) || place.depth >= deepest) {
    const reason = place.depth >= deepest ? `lists are nested more than ${deepest} deep` : 'an alias repeats a list'
    into.findings.push(
      manifestFinding('manifest.nested-list', {
        message: `${reason}; it is left out here`,
        origin: place.origin,
        hint: 'write the objects out once, side by side',
      }),
    )
    return
  }
  into.seenLists.add(items)
  const { file, line: outerLine, index: outer } = place.origin
  const { inherited, itemLines } = place
  const prefix = outer === undefined ? name : `${outer}${name === '' ? '' : `.${name}`}`
  for (let at = 0; at < items.length; at++) {
    if (items[at] === undefined) continue
    const index = `${prefix}[${at}]`
    const line = itemLines?.[at] ?? outerLine
    const origin = line === undefined ? { file, index } : { file, line, index }
    gather(items[at], { origin, depth: place.depth + 1, ...(inherited && { inherited }) }, into)
  }
}

function reportNoKind(value: RawRecord, place: Place, into: Gathered): void {
  const isHalfObject = 'apiVersion' in value || 'metadata' in value || 'kind' in value
  const message = isHalfObject
    ? `the object has no readable kind (${describeValue(value.kind)}), and is left out`
    : 'the map is no Kubernetes object (it has neither kind nor apiVersion), and is left out'
  into.findings.push(
    manifestFinding(isHalfObject ? 'manifest.no-kind' : 'manifest.not-an-object', {
      message,
      origin: place.origin,
      hint: isHalfObject ? 'add kind and apiVersion' : 'give objects as kubectl get -o yaml or -o json prints them',
    }),
  )
}

function reportStatus(value: RawRecord, place: Place, into: Gathered): void {
  into.findings.push(
    manifestFinding('manifest.api-error', {
      message: `this is an error that the API server answered (${describeValue(value.message)}), not the objects`,
      origin: place.origin,
      hint: 'run the kubectl command again',
    }),
  )
}
