/** An endpoint's conditions as kube-proxy and DNS take them, and what to call it. */
import type { Endpoint, EndpointSlice } from '#model/endpoint-slice'

export type EndpointState = { readonly isReady: boolean; readonly isServing: boolean; readonly isTerminating: boolean }

/** pkg/proxy/endpointslicecache.go (1.34): absent `ready` and `serving` count as true. */
export function stateOf({ conditions }: Endpoint): EndpointState {
  const { ready = true, serving = true, terminating = false } = conditions
  return { isReady: ready, isServing: serving, isTerminating: terminating }
}

/** `pod web-0 (10.244.1.5)`, `10.244.1.5`. */
export function nameEndpoint({ targetRef, addresses }: Endpoint): string {
  const address = addresses[0] ?? 'no address'
  return targetRef === undefined ? address : `${targetRef.kind.toLowerCase()} ${targetRef.name} (${address})`
}

export function* endpointsOf(
  slices: readonly EndpointSlice[],
): Generator<{ readonly slice: EndpointSlice; readonly endpoint: Endpoint }> {
  for (const slice of slices) for (const endpoint of slice.endpoints) yield { slice, endpoint }
}
