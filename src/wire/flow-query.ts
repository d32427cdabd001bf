/**
 * Filters of flows as a query string: `from.namespace=shop&to.port=443&not.verdict=DROP`. A name that is repeated holds when one of
 * its values does, different names must all hold, and `not.` turns the whole list round.
 */
import Type, { type TSchema } from 'typebox'
import { canonicalIp } from '#base/ip'
import { parsePort } from '#base/port-range'
import { parsePrefix } from '#base/prefix'
import { canonicalAddress } from '#flows/address'
import type { FlowCondition, FlowFilter, Side } from '#flows/filter'
import { type Instant, isInstant, microsPerSecond, parseInstant } from '#flows/instant'
import { parseLabelRequirements } from './label-requirements'
import type { FieldError } from './problem'

export type Query = Readonly<Record<string, string | readonly string[] | undefined>>

/** A condition of one value, or the sentence why it is none. */
type Read = (text: string, side: Side) => FlowCondition | string

type FilterWord = { readonly meaning: string; readonly read: Read }

/** Of one end of the connection: with `from.` its initiator, with `to.` its responder, with neither one of the two. */
const endWords: Readonly<Record<string, FilterWord>> = {
  pod: { meaning: 'NAMESPACE/NAME, NAMESPACE/ or NAME; the name is a prefix', read: readPod },
  namespace: {
    meaning: 'a namespace',
    read: (namespace, side) => ({ field: 'namespace', side, namespace }),
  },
  label: { meaning: 'a label selector such as app=web or tier in (a,b)', read: readLabels },
  workload: { meaning: 'NAMESPACE/KIND/NAME, KIND/NAME or NAME, such as deployment/web', read: readWorkload },
  ip: { meaning: 'an address or a range such as 10.0.0.0/8', read: readAddress },
}

/** Of the connection as a whole. */
const flowWords: Readonly<Record<string, FilterWord>> = {
  port: { meaning: 'the port that was connected to', read: readPort },
  protocol: { meaning: 'TCP, UDP or another', read: (protocol) => ({ field: 'protocol', protocol }) },
  verdict: { meaning: 'ALLOW or DROP', read: (decision) => ({ field: 'decision', decision }) },
  direction: { meaning: 'ingress or egress, as the pod saw it', read: readDirection },
  peer: { meaning: 'the kind of the peer: pod, node, service or none', read: readPeerKind },
}

export type ParsedFlowQuery = { readonly filter: FlowFilter; readonly errors: readonly FieldError[] }

/** `now` is what relative times such as -15m are counted from. Names that are no filter are left to the schema. */
export function parseFlowQuery(query: Query, now: Instant): ParsedFlowQuery {
  const errors: FieldError[] = []
  const fail = (field: string, message: string): void => {
    errors.push({ field: `query.${field}`, message })
  }
  const terms = Object.entries(query).flatMap(([name, given]) => {
    const found = wordOf(name)
    if (found === undefined || given === undefined) return []
    const anyOf = textsOf(given).flatMap((text) => {
      const condition = text.trim() === '' ? 'is empty' : found.word.read(text.trim(), found.side)
      if (typeof condition !== 'string') return [condition]
      fail(name, condition)
      return []
    })
    return anyOf.length === 0 ? [] : [{ anyOf, ...(found.isNegated && { isNegated: true }) }]
  })
  const since = parseTime('since', query, { now, fail })
  const until = parseTime('until', query, { now, fail })
  return {
    filter: { terms, ...(since !== undefined && { since }), ...(until !== undefined && { until }) },
    errors,
  }
}

function wordOf(
  name: string,
): { readonly word: FilterWord; readonly side: Side; readonly isNegated: boolean } | undefined {
  const isNegated = name.startsWith('not.')
  const rest = isNegated ? name.slice('not.'.length) : name
  const match = /^(?:(from|to)\.)?([a-z]+)$/.exec(rest)
  if (match === null) return undefined
  const [, side, key = ''] = match
  const word = endWords[key] ?? (side === undefined ? flowWords[key] : undefined)
  return word === undefined ? undefined : { word, side: (side as Side | undefined) ?? 'either', isNegated }
}

/** Every parameter that a filter may have, for schemas and documents. */
export function flowQueryParameters(): Readonly<Record<string, TSchema>> {
  const repeatable = (description: string): TSchema =>
    Type.Optional(
      Type.Unsafe<string | string[]>({
        anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' }, maxItems: 100 }],
        description,
      }),
    )
  return Object.fromEntries([
    ...filterNames().map(({ name, meaning }) => [name, repeatable(meaning)] as const),
    ['since', timeParameter('flows seen at or after this time; -15m counts from now')] as const,
    ['until', timeParameter('flows first seen before this time')] as const,
  ])
}

export function timeParameter(description: string): TSchema {
  return Type.Optional(Type.String({ description }))
}

export function filterNames(): readonly { readonly name: string; readonly meaning: string }[] {
  const ends = Object.entries(endWords).flatMap(([key, { meaning }]) => [
    { name: key, meaning: `either end: ${meaning}` },
    { name: `from.${key}`, meaning: `who connects: ${meaning}` },
    { name: `to.${key}`, meaning: `who is connected to: ${meaning}` },
  ])
  const all = [...ends, ...Object.entries(flowWords).map(([name, { meaning }]) => ({ name, meaning }))]
  return [...all, ...all.map(({ name, meaning }) => ({ name: `not.${name}`, meaning: `not ${meaning}` }))]
}

type TimeReading = { readonly now: Instant; readonly fail: (field: string, message: string) => void }

function parseTime(name: string, query: Query, { now, fail }: TimeReading): Instant | undefined {
  const given = query[name]
  if (given === undefined) return undefined
  const texts = textsOf(given)
  const instant = texts.length === 1 ? parseTimeOrAge(texts[0] ?? '', now) : undefined
  if (instant === undefined) fail(name, 'must be one time such as 2026-07-23T10:00:00Z, or an age such as -15m')
  return instant
}

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 }

/** A time, or how long ago: `-15m`, `-2h`; the minus may be left out. */
export function parseTimeOrAge(text: string, now: Instant): Instant | undefined {
  const age = /^-?(\d{1,9})([smhd])$/.exec(text.trim())
  if (age === null) return parseInstant(text.trim())
  const instant = now - Number(age[1]) * (unitSeconds[age[2] ?? ''] ?? 0) * microsPerSecond
  return isInstant(instant) ? instant : undefined
}

function textsOf(given: string | readonly string[]): readonly string[] {
  return typeof given === 'string' ? [given] : given
}

function readPod(text: string, side: Side): FlowCondition | string {
  const [namespace, name, ...more] = text.includes('/') ? text.split('/') : [undefined, text]
  if (more.length > 0 || namespace === '') return 'must be NAMESPACE/NAME, NAMESPACE/ or NAME'
  return { field: 'pod', side, ...(namespace !== undefined && { namespace }), namePrefix: name ?? '' }
}

function readLabels(text: string, side: Side): FlowCondition | string {
  const requirements = parseLabelRequirements(text)
  if (requirements === undefined) return 'must be a label selector such as app=web,tier in (a,b),!canary'
  return { field: 'labels', side, requirements }
}

function readWorkload(text: string, side: Side): FlowCondition | string {
  const parts = text.split('/')
  if (parts.length > 3 || parts.includes('')) return 'must be NAMESPACE/KIND/NAME, KIND/NAME or NAME'
  const [name = '', kind, namespace] = parts.toReversed()
  return {
    field: 'workload',
    side,
    ...(namespace !== undefined && { namespace }),
    ...(kind !== undefined && { kind }),
    name,
  }
}

function readAddress(text: string, side: Side): FlowCondition | string {
  if (text.includes('/')) {
    return parsePrefix(text) === undefined ? 'must be a range such as 10.0.0.0/8' : { field: 'cidr', side, cidr: text }
  }
  const address = canonicalIp(canonicalAddress(text))
  return address === undefined ? 'must be an address or a range' : { field: 'ip', side, address }
}

function readPort(text: string): FlowCondition | string {
  const port = parsePort(text)
  return port === undefined ? 'must be a port from 0 to 65535' : { field: 'port', port }
}

function readDirection(text: string): FlowCondition | string {
  const direction = text.toUpperCase()
  if (direction === 'INGRESS' || direction === 'EGRESS') return { field: 'direction', direction }
  return 'must be ingress or egress'
}

function readPeerKind(text: string): FlowCondition | string {
  const peerKind = text.toLowerCase()
  if (peerKind === 'pod' || peerKind === 'node' || peerKind === 'service' || peerKind === 'none') {
    return { field: 'peer-kind', peerKind }
  }
  return 'must be pod, node, service or none'
}
