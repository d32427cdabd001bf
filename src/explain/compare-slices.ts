/** The slices of the input against what the pods imply: pods left out, addresses left over, conditions out of date. */
import { compareText, countOf, listOf } from '#base/text'
import { diffSlices, type SliceDifference } from '#compile/endpointslices/diff-slices'
import { type Endpoint, type EndpointSlice, managedByLabel } from '#model/endpoint-slice'
import { selects } from '#model/meta'
import { endpointsOf, nameEndpoint, stateOf } from './describe-endpoint'
import type { ExplainFinding } from './explanation'
import { explainFinding } from './findings'
import { holderOf } from './index-holders'
import type { ServiceView } from './service-view'

/** Empty where the input has no slices of the Service, or no pods to compare them with. */
export function compareSlices(view: ServiceView): readonly ExplainFinding[] {
  const { given, wanted } = view.slices
  if (given.length === 0 || wanted === undefined) return []
  const differences = diffSlices(wanted, given)
  const isUsable = usableIn([...wanted, ...given])
  const missing = differences.filter((one) => one.kind === 'missing')
  const extra = differences.filter((one) => one.kind === 'extra')
  const lacking = missing.filter((one) => isUsable(one.address))
  const stale = extra.filter((one) => isUsable(one.address))
  const rest = differences.filter((one) => !lacking.includes(one) && !stale.includes(one))
  return [...lacks(view, lacking), ...leftOver(view, stale), ...otherwise(view, rest)]
}

/** Whether an address gets new connections in some slice: one that does not is no loss and no harm. */
function usableIn(slices: readonly EndpointSlice[]): (address: string) => boolean {
  const usable = new Set<string>()
  for (const { endpoint } of endpointsOf(slices)) {
    const { isReady, isServing, isTerminating } = stateOf(endpoint)
    const [address] = endpoint.addresses
    if (address !== undefined && (isReady || (isServing && isTerminating))) usable.add(address)
  }
  return (address) => usable.has(address)
}

function lacks(view: ServiceView, missing: readonly SliceDifference[]): readonly ExplainFinding[] {
  if (missing.length === 0) return []
  const names = missing.map(({ address }) => podNameAt(view, address))
  return [
    explainFinding('explain.slice-lacks-pod', {
      about: view.service.meta,
      message: `its slices leave out ${countOf(missing.length, 'ready pod')}: ${listOf(names)}`,
      evidence: [
        `slices of the input: ${listOf(view.slices.given.map(({ meta }) => meta.name))}`,
        ...missing.slice(0, 10).map(({ address }) => `${podNameAt(view, address)} is in none of them`),
      ],
      hint: 'see that the EndpointSlice controller runs (kube-controller-manager) and that no slice was edited by hand',
    }),
  ]
}

function podNameAt({ holders }: ServiceView, address: string): string {
  const pod = holders.pods.get(address)?.[0]
  return pod === undefined ? address : `pod ${pod.meta.name} (${address})`
}

/** Each endpoint with the reason it is left over, one finding for each slice. */
function leftOver(view: ServiceView, extra: readonly SliceDifference[]): readonly ExplainFinding[] {
  const addresses = new Set(extra.map(({ address }) => address))
  return view.slices.given.flatMap((slice) => {
    const stale = slice.endpoints.filter(({ addresses: [ip] }) => ip !== undefined && addresses.has(ip))
    if (stale.length === 0) return []
    const manager = slice.meta.labels[managedByLabel]
    const isForeign = manager !== 'endpointslice-controller.k8s.io'
    const who = manager === undefined ? 'nobody manages it (no managed-by label)' : `managed by ${manager}`
    return [
      explainFinding('explain.stale-slice', {
        about: slice.meta,
        path: 'endpoints',
        message: `slice ${slice.meta.name} still sends to ${listOf(stale.map(nameEndpoint), 5)}, which the pods of the Service no longer imply`,
        evidence: [...stale.slice(0, 10).map((endpoint) => whyStale(view, endpoint)), who],
        hint: isForeign
          ? `the EndpointSlice controller does not look after it: delete the slice, or take its label kubernetes.io/service-name away`
          : 'see that the EndpointSlice controller runs; it should have taken these endpoints out',
      }),
    ]
  })
}

function whyStale({ input, service, holders }: ServiceView, endpoint: Endpoint): string {
  const address = endpoint.addresses[0] ?? ''
  const name = endpoint.targetRef?.name
  const pod = name === undefined ? undefined : input.cluster.pods.get(`${service.meta.namespace}/${name}`)
  if (name === undefined || endpoint.targetRef?.kind !== 'Pod') {
    const holder = holderOf(holders, address)
    return `${address}: ${holder === undefined ? 'no pod or node of the input has it' : `${holder} has it`}`
  }
  if (pod === undefined) return `${address}: pod ${name} does not exist any more`
  if (!selects(service.selector ?? {}, pod.meta.labels)) {
    const wrong = Object.entries(service.selector ?? {}).filter(([key, value]) => pod.meta.labels[key] !== value)
    const texts = wrong.map(([key, value]) => `${key}=${pod.meta.labels[key] ?? '(none)'} where ${value} is selected`)
    return `${address}: pod ${name} has ${listOf(texts)}`
  }
  if (!pod.podIPs.includes(address)) return `${address}: pod ${name} now has ${listOf(pod.podIPs) || 'no address'}`
  return `${address}: pod ${name} is in phase ${pod.phase} on ${pod.nodeName ?? 'no node'}`
}

/** Differences that are told together: readiness that has moved on, ports, zones, and endpoints that get nothing anyway. */
function otherwise(view: ServiceView, rest: readonly SliceDifference[]): readonly ExplainFinding[] {
  if (rest.length === 0) return []
  const texts = rest.map((one) => `${podNameAt(view, one.address)} in ${one.slice}: ${differenceText(one)}`)
  const fields = new Set(rest.map((one) => (one.kind === 'changed' ? one.field : 'endpoints')))
  return [
    explainFinding('explain.slice-differs', {
      about: view.service.meta,
      message: `its slices are not what the pods imply: ${listOf([...fields].sort(compareText))} differ`,
      evidence: texts.slice(0, 10),
      hint: 'normal for a moment after a change; if it lasts, see that the EndpointSlice controller runs',
    }),
  ]
}

function differenceText(one: SliceDifference): string {
  if (one.kind === 'changed')
    return `${one.field} is ${one.input || 'unset'}, the pod implies ${one.computed || 'unset'}`
  return one.kind === 'missing' ? 'the pod is not in it' : 'no selected pod has this address'
}
