/** The slices that everything else works with: computed from the pods, or those of the input as they are. */
import type { Parsed } from '#base/finding'
import type { Cluster } from '#model/cluster'
import type { EndpointSlice } from '#model/endpoint-slice'
import { buildEndpointSlices, type SliceOptions } from './build-endpoint-slices'

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
      return { value: [...cluster.slices.values()], findings: [] }
    default:
      return mode satisfies never
  }
}
