/** The slices that everything else works with: computed from the pods, or those of the input as they are. */
import type { Finding, Parsed } from '#base/finding'
import { countOf } from '#base/text'
import type { Cluster } from '#model/cluster'
import type { EndpointSlice } from '#model/endpoint-slice'
import { buildEndpointSlices, type SliceOptions } from './build-endpoint-slices'
import { findingAt } from './findings'

export type SliceMode = 'computed' | 'input'

export function selectSlices(
  cluster: Cluster,
  mode: SliceMode,
  options: SliceOptions = {},
): Parsed<readonly EndpointSlice[]> {
  switch (mode) {
    case 'computed':
      return buildEndpointSlices(cluster, options)
    case 'input':
      return { value: [...cluster.slices.values()], findings: noteNoSlices(cluster) }
    default:
      return mode satisfies never
  }
}

/** One finding for all Services, which would each tell the same. */
function noteNoSlices({ services, slices }: Cluster): readonly Finding[] {
  if (slices.size > 0) return []
  const served = [...services.values()].filter(({ type }) => type !== 'ExternalName')
  const [first] = served
  if (first === undefined) return []
  const message = `the input holds no EndpointSlices at all, so ${countOf(served.length, 'Service')} ${served.length === 1 ? 'has' : 'have'} no endpoints, and rules refuse traffic (REJECT) for that reason alone`
  const hint = 'add the output of kubectl get endpointslices -A, or have them computed with --slices computed'
  return [findingAt(first.meta, 'endpointslices.no-slices-read', { message, hint })]
}
