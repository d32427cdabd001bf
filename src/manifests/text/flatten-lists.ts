/** From the value of one document to the objects in it: a single object, an array, a List, or Lists inside Lists. */
import type { Finding, Origin } from '#base/finding'
import { manifestFinding } from '#manifests/findings'
import { describeValue, isRecord, type RawObject, type RawRecord } from './raw-object'

/** What is gathered from a text; `seenLists` keeps a List that YAML aliases repeat from being walked again. */
export type Gathered = {
  readonly objects: RawObject[]
  readonly findings: Finding[]
  readonly seenLists: Set<unknown>
  /** There was a List: without items it still answers that there are none. */
  hasList: boolean
}

/** What an item of a List inherits from it; a plain List tells no kind. */
type Inherited = { readonly kind: string; readonly apiVersion: string }

type Place = {
  readonly origin: Origin
  /** The List around an item. */
  readonly list?: Inherited
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
  const kind = kindOf(value, place.list)
  const apiVersion = typeof value.apiVersion === 'string' ? value.apiVersion : (place.list?.apiVersion ?? '')
  if (kind === undefined) reportNoKind(value, place, into)
  else if (isList(kind, value)) {
    if (value.items === undefined) tellOtherCase(kind, value, place, into)
    gatherList({ kind, apiVersion, items: value.items ?? [] }, place, into)
  } else if (kind === 'Status' && value.status === 'Failure') reportStatus(value, place, into)
  else into.objects.push({ kind, apiVersion, value, origin: place.origin })
}

const kindName = /^[A-Za-z][A-Za-z0-9]{0,62}$/

function kindOf(value: RawRecord, list: Inherited | undefined): string | undefined {
  if (typeof value.kind === 'string' && kindName.test(value.kind)) return value.kind
  const isAbsent = value.kind === undefined || value.kind === null
  return isAbsent && list !== undefined && list.kind !== '' ? list.kind : undefined
}

/** Some kinds of objects end in List too, but those have names. Go writes null for an empty list. */
function isList(kind: string, value: RawRecord): boolean {
  const hasName = isRecord(value.metadata) && value.metadata.name !== undefined
  return kind.endsWith('List') && (kind === 'List' || 'items' in value || !hasName)
}

/** Field names are held to their case, so that `Items` would be lost without a word. */
function tellOtherCase(kind: string, value: RawRecord, { origin }: Place, into: Gathered): void {
  const key = Object.keys(value).find((name) => name.toLowerCase() === 'items')
  if (key === undefined) return
  const message = `a ${kind} has ${describeValue(key)} where items is wanted; it is left out, as the API server leaves it out`
  into.findings.push(manifestFinding('manifest.wrong-type', { message, path: key, origin, hint: 'write items' }))
}

type List = Inherited & { readonly items: unknown }

function gatherList(list: List, place: Place, into: Gathered): void {
  if (place.list !== undefined) {
    into.findings.push(
      manifestFinding('manifest.nested-list', {
        message: `a ${list.kind} stands inside another list; its items are read as if they stood alone`,
        origin: place.origin,
      }),
    )
  }
  const kind = list.kind.slice(0, -'List'.length)
  const inherited = { kind, apiVersion: kind === '' ? '' : list.apiVersion }
  const { items } = list
  if (!Array.isArray(items)) {
    const message = `${describeValue(items)} stands where the items of a ${list.kind} are wanted; it is left out`
    const hint = 'write the items as a list'
    into.findings.push(manifestFinding('manifest.wrong-type', { message, path: 'items', origin: place.origin, hint }))
    return
  }
  into.hasList = true
  gatherItems({ items, name: 'items' }, { ...place, list: inherited }, into)
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
  const { list, itemLines } = place
  const prefix = outer === undefined ? name : `${outer}${name === '' ? '' : `.${name}`}`
  for (let at = 0; at < items.length; at++) {
    if (items[at] === undefined) continue
    const index = `${prefix}[${at}]`
    const line = itemLines?.[at] ?? outerLine
    const origin = line === undefined ? { file, index } : { file, line, index }
    gather(items[at], { origin, depth: place.depth + 1, ...(list && { list }) }, into)
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
