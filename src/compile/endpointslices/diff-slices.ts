/** Computed slices against those of the input, endpoint by endpoint: in which slice an endpoint sits does not matter. */
import type { ObjectRef } from '#base/finding'
import { compareText } from '#base/text'
import {
  type AddressType,
  type Endpoint,
  type EndpointPort,
  type EndpointSlice,
  serviceNameLabel,
} from '#model/endpoint-slice'

export type EndpointField =
  | 'ports'
  | 'ready'
  | 'serving'
  | 'terminating'
  | 'hostname'
  | 'nodeName'
  | 'zone'
  | 'targetRef'
  | 'forZones'
  | 'forNodes'

type EndpointPlace = {
  readonly service: ObjectRef
  readonly addressType: AddressType
  readonly address: string
  /** The slice that holds the endpoint: of the input when it is there, else the computed one. */
  readonly slice: string
}

/** `missing`: computed and not in the input. `extra`: in the input and not computed. */
export type SliceDifference =
  | (EndpointPlace & { readonly kind: 'missing' | 'extra'; readonly ports: string })
  | (EndpointPlace & {
      readonly kind: 'changed'
      readonly field: EndpointField
      readonly computed: string
      readonly input: string
    })

/** In the order of Services, then addresses, as text. Slices without a Service's name are left aside. */
export function diffSlices(
  computed: Iterable<EndpointSlice>,
  input: Iterable<EndpointSlice>,
): readonly SliceDifference[] {
  const wanted = indexEndpoints(computed)
  const found = indexEndpoints(input)
  const keys = [...new Set([...wanted.keys(), ...found.keys()])].sort(compareText)
  return keys.flatMap((key) => diffEndpoint(wanted.get(key), found.get(key)))
}

type Seen = { readonly place: EndpointPlace; readonly endpoint: Endpoint; readonly ports: string[] }

function indexEndpoints(slices: Iterable<EndpointSlice>): ReadonlyMap<string, Seen> {
  const index = new Map<string, Seen>()
  for (const { meta, addressType, endpoints, ports } of slices) {
    const name = meta.labels[serviceNameLabel]
    if (name === undefined) continue
    const service = { kind: 'Service', namespace: meta.namespace, name }
    const portTexts = ports.map(printPort)
    for (const endpoint of endpoints) {
      const [address] = endpoint.addresses
      if (address === undefined) continue
      const key = `${meta.namespace}/${name} ${addressType} ${address}`
      const seen = index.get(key)
      if (seen !== undefined) seen.ports.push(...portTexts)
      else
        index.set(key, { place: { service, addressType, address, slice: meta.name }, endpoint, ports: [...portTexts] })
    }
  }
  return index
}

function diffEndpoint(wanted: Seen | undefined, found: Seen | undefined): readonly SliceDifference[] {
  if (found === undefined) {
    return wanted === undefined ? [] : [{ ...wanted.place, kind: 'missing', ports: printPorts(wanted.ports) }]
  }
  if (wanted === undefined) return [{ ...found.place, kind: 'extra', ports: printPorts(found.ports) }]
  const differences: SliceDifference[] = []
  const compare = (field: EndpointField, computed: string, input: string): void => {
    if (computed !== input) differences.push({ ...found.place, kind: 'changed', field, computed, input })
  }
  const [a, b] = [wanted.endpoint, found.endpoint]
  compare('ports', printPorts(wanted.ports), printPorts(found.ports))
  compareConditions(a, b, compare)
  compare('hostname', a.hostname ?? '', b.hostname ?? '')
  compare('nodeName', a.nodeName ?? '', b.nodeName ?? '')
  compare('zone', a.zone ?? '', b.zone ?? '')
  compare('targetRef', printTarget(a, b), printTarget(b, a))
  compare('forZones', printHints(a.forZones), printHints(b.forZones))
  compare('forNodes', printHints(a.forNodes), printHints(b.forNodes))
  return differences
}

/** An absent condition means what the API says it means, so it is no difference from the same in words. */
function compareConditions(
  a: Endpoint,
  b: Endpoint,
  compare: (field: EndpointField, computed: string, input: string) => void,
): void {
  const ready = [a.conditions.ready ?? true, b.conditions.ready ?? true] as const
  compare('ready', String(ready[0]), String(ready[1]))
  compare('serving', String(a.conditions.serving ?? ready[0]), String(b.conditions.serving ?? ready[1]))
  compare('terminating', String(a.conditions.terminating ?? false), String(b.conditions.terminating ?? false))
}

function printPort({ name, protocol, port }: EndpointPort): string {
  return `${name === undefined || name === '' ? '' : `${name}:`}${port ?? '*'}/${protocol}`
}

function printPorts(ports: readonly string[]): string {
  return [...new Set(ports)].sort(compareText).join(' ')
}

/** The uid is part of the text only where both sides tell one. */
function printTarget({ targetRef }: Endpoint, other: Endpoint): string {
  if (targetRef === undefined) return ''
  const name = `${targetRef.kind} ${targetRef.namespace ?? ''}/${targetRef.name}`
  return targetRef.uid === undefined || other.targetRef?.uid === undefined ? name : `${name} ${targetRef.uid}`
}

function printHints(hints: readonly string[] | undefined): string {
  return (hints ?? []).toSorted(compareText).join(' ')
}
