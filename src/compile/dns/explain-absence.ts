/** Why a name is not there, in words that name the object to mend. */
import { countOf, listOf } from '#base/text'
import type { Endpoint, EndpointSlice } from '#model/endpoint-slice'
import type { Service } from '#model/service'
import type { ObjectQuestion } from './parse-question'
import { isServed, type ZoneIndex } from './zone-index'

export function explainService({ namespace, name }: ObjectQuestion, index: ZoneIndex): string {
  const all = index.servicesIn(namespace)
  const missing = `namespace ${namespace} has no Service ${name}`
  if (all.length === 0) return `${missing}, nor any other`
  const near = all.map(({ meta }) => meta.name).find((other) => isNear(other, name))
  if (near !== undefined) return `${missing}; it has ${near}`
  const elsewhere = index.service(name, namespace)
  return elsewhere === undefined
    ? missing
    : `${missing}; namespace ${name} has a Service ${namespace}: are the two swapped?`
}

export function explainEmpty({ meta }: Service, slices: readonly EndpointSlice[]): string {
  const place = `Service ${meta.namespace}/${meta.name} is headless`
  const endpoints = slices.flatMap((slice) => slice.endpoints)
  if (endpoints.length === 0) return `${place} and has no endpoints at all, so its name does not exist`
  const [only, another] = endpoints
  const named = endpoints.map(describeEndpoint)
  const waiting =
    only !== undefined && another === undefined
      ? `its only endpoint is not ready (${named.join()})`
      : `none of its ${countOf(endpoints.length, 'endpoint')} is ready (${listOf(named, 4)})`
  return `${place} and ${waiting}, so its name does not exist; publishNotReadyAddresses would change that`
}

export function explainEndpoint(question: ObjectQuestion, slices: readonly EndpointSlice[]): string {
  const service = `Service ${question.namespace}/${question.name}`
  const waiting = slices
    .flatMap((slice) => slice.endpoints)
    .find((endpoint) => !isServed(endpoint) && isCalled(endpoint, question.endpoint ?? ''))
  if (waiting !== undefined) return `endpoint ${question.endpoint} of ${service} is ${stateOf(waiting)}`
  return `${service} has no ready endpoint called ${question.endpoint}`
}

export function explainPorts({ port, protocol }: ObjectQuestion, service: Service): string {
  const { namespace, name } = service.meta
  const ports = service.ports.map((one) => `_${one.name || one.port}._${one.protocol.toLowerCase()}`)
  return `Service ${namespace}/${name} has no port _${port ?? ''}._${protocol ?? ''}; it has ${listOf(ports) || 'none'}`
}

function describeEndpoint(endpoint: Endpoint): string {
  const { targetRef, addresses } = endpoint
  return `${targetRef?.name ?? addresses[0] ?? 'one without an address'} ${stateOf(endpoint)}`
}

function stateOf({ conditions }: Endpoint): string {
  return conditions.terminating === true ? 'terminating' : 'not ready'
}

function isCalled(endpoint: Endpoint, label: string): boolean {
  const names = [
    endpoint.hostname,
    endpoint.targetRef?.name,
    ...endpoint.addresses.map((ip) => ip.replaceAll(/[.:]/g, '-')),
  ]
  return names.includes(label)
}

/** Two neighbouring letters swapped, or one more, one less or another. */
export function isNear(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1 || a.length < 3 || b.length < 3) return false
  let start = 0
  while (start < a.length && a[start] === b[start]) start++
  let end = 0
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  const [left, right] = [a.slice(start, a.length - end), b.slice(start, b.length - end)]
  const isSwap = left.length === 2 && right.length === 2 && left[0] === right[1] && left[1] === right[0]
  return (left.length <= 1 && right.length <= 1) || isSwap
}
