/**
 * What the name of a port stands for in rules of egress: Cilium takes the names of all pods together, whichever peers a
 * rule selects. Mirrors Endpoint.GetNamedPort and NamedPortMultiMap of pkg/types/portmap.go, Cilium 1.16 to 1.19; from 1.20
 * on the peers' own names count (cilium#44429).
 */
import { listOf } from '#base/text'
import type { Cluster } from '#model/cluster'
import { keyOf } from '#model/meta'
import { type NamedPort, namedPorts, type Pod } from '#model/pod'

export type ClusterPortNames = {
  /** Protocol and name of those that any pod has. */
  readonly known: ReadonlySet<string>
  /** Those of one number. */
  readonly ports: readonly NamedPort[]
  /** Numbers that pods give one name and protocol, with a pod for each, where there are several: then there is no port. */
  readonly disputed: ReadonlyMap<string, ReadonlyMap<number, string>>
}

export function clusterPortNames(cluster: Cluster): ClusterPortNames {
  const known = remembered.get(cluster)
  if (known !== undefined) return known
  const names = gatherNames(cluster)
  remembered.set(cluster, names)
  return names
}

const remembered = new WeakMap<Cluster, ClusterPortNames>()

function gatherNames({ pods }: Cluster): ClusterPortNames {
  const byName = new Map<string, { readonly port: NamedPort; readonly numbers: Map<number, string> }>()
  for (const pod of pods.values()) {
    if (!isInIpcache(pod)) continue
    for (const port of namedPorts(pod)) {
      const key = keyOfName(port)
      const there = byName.get(key) ?? { port: { ...port, name: port.name.toLowerCase() }, numbers: new Map() }
      byName.set(key, there)
      if (!there.numbers.has(port.port)) there.numbers.set(port.port, keyOf(pod.meta))
    }
  }
  const all = [...byName]
  return {
    known: new Set(byName.keys()),
    ports: all.filter(([, { numbers }]) => numbers.size === 1).map(([, { port }]) => port),
    disputed: new Map(all.filter(([, { numbers }]) => numbers.size > 1).map(([key, { numbers }]) => [key, numbers])),
  }
}

function keyOfName({ protocol, name }: NamedPort): string {
  return `${protocol} ${name.toLowerCase()}`
}

/** Whether any pod has the name, also where pods give it different numbers. */
export function isNamed({ known }: ClusterPortNames, port: NamedPort): boolean {
  return known.has(keyOfName(port))
}

/** The agent has names of ports with the addresses of pods (pkg/ipcache, pkg/k8s/watchers/pod.go). */
function isInIpcache({ hostNetwork, podIPs, phase }: Pod): boolean {
  return !hostNetwork && podIPs.length > 0 && phase !== 'Succeeded' && phase !== 'Failed'
}

/** Undefined where pods agree, or where no pod has the name. */
export function whyDisputed({ disputed }: ClusterPortNames, name: string): string | undefined {
  for (const protocol of ['TCP', 'UDP', 'SCTP'] as const) {
    const numbers = disputed.get(`${protocol} ${name}`)
    if (numbers === undefined) continue
    const told = [...numbers].map(([port, pod]) => `${protocol} ${port} in ${pod}`)
    return `pods give the name ${name} to different ports (${listOf(told, 3)}), so that it stands for none in rules of egress`
  }
  return undefined
}
