/** The /etc/hosts that the kubelet writes into a pod: both C libraries look there before they ask (pkg/kubelet/kubelet_pods.go). */
import type { Pod } from '#model/pod'

export type HostsEntry = { readonly address: string; readonly names: readonly string[] }

/** A pod on the host's network has the node's file, which the input does not hold beyond these first lines. */
export function podHosts(pod: Pod, clusterDomain: string): readonly HostsEntry[] {
  if (pod.hostNetwork) return usualEntries
  // A hostname that is cut does not end in a dash or a dot (truncatePodHostnameIfNeeded).
  const hostname =
    pod.hostname ?? (pod.meta.name.length > 63 ? pod.meta.name.slice(0, 63).replace(/[-.]+$/, '') : pod.meta.name)
  const { namespace } = pod.meta
  const whole = pod.subdomain === undefined ? [] : [`${hostname}.${pod.subdomain}.${namespace}.svc.${clusterDomain}`]
  return [...usualEntries, ...pod.podIPs.map((address) => ({ address, names: [...whole, hostname] }))]
}

export const usualEntries: readonly HostsEntry[] = [
  { address: '127.0.0.1', names: ['localhost'] },
  { address: '::1', names: ['localhost', 'ip6-localhost', 'ip6-loopback'] },
  { address: 'fe00::', names: ['ip6-localnet', 'ip6-mcastprefix'] },
  { address: 'fe00::1', names: ['ip6-allnodes'] },
  { address: 'fe00::2', names: ['ip6-allrouters'] },
]

/** Only addresses are looked up there; a closing dot keeps the name out of the file. */
export function lookUpHosts(
  entries: readonly HostsEntry[],
  name: string,
  types: readonly string[],
): HostsEntry | undefined {
  const wanted = name.toLowerCase()
  return entries.find(
    ({ address, names }) =>
      types.includes(address.includes(':') ? 'AAAA' : 'A') && names.some((other) => other.toLowerCase() === wanted),
  )
}
