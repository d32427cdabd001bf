/** Host ports of the node's pods as frontends. Mirrors pkg/k8s/watchers/pod.go, Cilium 1.16 to 1.19. */
import { addressesOfNode, nodePortIps } from './frontends'
import type { Lb, NewFrontend } from './lb-rows'
import { sourceOf } from './map-source'
import type { NodeWorld, PodEndpoint } from './node-world'
import { flagsOfFrontend } from './service-flags'

/** A pod on the host's network has its ports there already. */
export function hostPortFrontends(world: NodeWorld, lb: Lb): readonly NewFrontend[] {
  if (!world.settings.replacesKubeProxy) return []
  return world.pods.filter(({ pod }) => pod.nodeName === world.node).flatMap((one) => ofPod(world, lb, one))
}

function ofPod(world: NodeWorld, lb: Lb, { pod, ips }: PodEndpoint): readonly NewFrontend[] {
  return pod.containers.flatMap(({ ports }, container) =>
    ports.flatMap(({ hostPort, containerPort, protocol }, index) => {
      if (hostPort === undefined || hostPort === 0) return []
      const path = `spec.containers[${container}].ports[${index}].hostPort`
      const source = sourceOf('services', pod.meta, { path })
      return ips.flatMap(({ ip }) => {
        const nodeIps = nodePortIps(world, ip.family)
        const backend = lb.addBackend({ ip, port: containerPort, protocol, state: 'active', source })
        return addressesOfNode('HostPort', hostPort, { nodeIps, path }).map((address): NewFrontend => {
          const facts = {
            type: 'HostPort',
            isExternalLocal: false,
            isInternalLocal: false,
            hasAffinity: false,
          } as const
          const flags = flagsOfFrontend({
            ...facts,
            isRoutable: !address.isSurrogate,
            hasSourceRanges: false,
            deniesSources: false,
          })
          return {
            type: 'HostPort',
            ip: address.ip,
            port: hostPort,
            protocol,
            scope: 'external',
            isSurrogate: address.isSurrogate,
            flags,
            algorithm: 0,
            slots: [backend],
            source,
          }
        })
      })
    }),
  )
}
