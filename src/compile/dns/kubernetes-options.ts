/** The options of CoreDNS's kubernetes plugin, with its own defaults. */
import type { Fallthrough } from './fallthrough'
import type { LabelTest } from './label-selector'

export type PodMode = 'disabled' | 'insecure' | 'verified'

export type KubernetesOptions = {
  /** Folded, with the closing dot; reverse zones among them answer PTR. */
  readonly zones: readonly string[]
  readonly pods: PodMode
  readonly usesPodNames: boolean
  readonly ttl: number
  readonly namespaces?: readonly string[]
  readonly namespaceSelector?: LabelTest
  readonly selector?: LabelTest
  readonly hasEndpoints: boolean
  readonly ignoresEmptyServices: boolean
  readonly isZonal: boolean
  /** Only endpoints with a hostname of their own have PTR records. */
  readonly pointersNeedHostname: boolean
  /** Zones of ServiceImports, which Portolan does not read. */
  readonly multiclusterZones: readonly string[]
  readonly fallthrough: Fallthrough
}

/** The zone that PTR answers name. */
export function primaryZone({ zones }: KubernetesOptions, isReverse: (zone: string) => boolean): string {
  return zones.find((zone) => !isReverse(zone)) ?? '.'
}

export function defaultOptions(zones: readonly string[]): KubernetesOptions {
  return {
    zones,
    pods: 'disabled',
    usesPodNames: false,
    ttl: 5,
    hasEndpoints: true,
    ignoresEmptyServices: false,
    isZonal: false,
    pointersNeedHostname: false,
    multiclusterZones: [],
    fallthrough: [],
  }
}
