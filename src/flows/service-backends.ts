/** What stands behind a Service: the pods that its selector takes in, and the port that a packet has once it gets there. */
import { selects } from '#model/meta'
import type { DirectoryIndex, KnownPod, KnownPort, KnownService } from './directory'
import type { Labels } from './holder'
import { stableLabels } from './stable-labels'

export type ConnectedPort = { readonly protocol: string; readonly port: number }

/** Undefined where no port of the Service is the one that was connected to. */
export function targetPortOf(
  service: KnownService | undefined,
  { protocol, port }: ConnectedPort,
): number | string | undefined {
  const own = service?.ports.filter((one) => one.protocol === protocol) ?? []
  const found = own.find((one) => one.port === port) ?? own.find(({ nodePort }) => nodePort !== 0 && nodePort === port)
  return found?.targetPort
}

/** One of each kind that policies may tell apart; the living, or those that were seen when none is known to live. */
export function backendsOf(index: DirectoryIndex, namespace: string, selector: Labels): readonly KnownPod[] {
  const selected = (index.podsByNamespace.get(namespace) ?? []).filter(({ labels }) => selects(selector, labels))
  const living = selected.filter(({ isDead }) => !isDead)
  const kinds = new Map<string, KnownPod>()
  for (const pod of living.length > 0 ? living : selected) {
    const place = pod.isHostNetwork ? pod.addresses.join() : ''
    const ports = pod.ports === null ? 'unknown' : JSON.stringify(pod.ports)
    const key = JSON.stringify([pod.workload, stableLabels(pod.labels), place, ports])
    const known = kinds.get(key)
    if (known === undefined || pod.name < known.name) kinds.set(key, pod)
  }
  return [...kinds.values()].sort((left, right) => (left.name < right.name ? -1 : 1))
}

/** The numbers that a port has at a pod; none where a name is not known there. */
export function portNumbersAt(
  pod: { readonly ports: readonly KnownPort[] | null },
  protocol: string,
  port: number | string,
): readonly number[] {
  if (typeof port === 'number') return [port]
  const own = (pod.ports ?? []).filter((one) => one.name === port && one.protocol === protocol)
  return [...new Set(own.map((one) => one.port))]
}
