/** CiliumLocalRedirectPolicy: frontends that go to pods of the same node. Mirrors pkg/loadbalancer/redirectpolicy, Cilium 1.16 to 1.19. */
import { type Ip, parseIp } from '#base/ip'
import { compareText } from '#base/text'
import type { CiliumLocalRedirectPolicy, RedirectPort } from '#model/cilium-network'
import { keyOf, refOf } from '#model/meta'
import { matchesSelector } from '#model/selector'
import type { Protocol, Service } from '#model/service'
import { mapsFinding } from './findings'
import type { NodeWorld, PodEndpoint } from './node-world'

export type Redirect = {
  readonly policy: CiliumLocalRedirectPolicy
  readonly ip: Ip
  readonly port: number
  readonly protocol: Protocol
  /** Pods of the node by address and port; empty where none of them is selected. */
  readonly backends: readonly { readonly ip: Ip; readonly port: number; readonly pod: PodEndpoint }[]
}

/** A policy for a Service without a pod on the node leaves the Service as it is; one for an address then has no backends. */
export function localRedirects(world: NodeWorld): readonly Redirect[] {
  const policies = [...world.cluster.localRedirectPolicies.values()].sort((a, b) =>
    compareText(keyOf(a.meta), keyOf(b.meta)),
  )
  if (!world.settings.hasLocalRedirects) {
    for (const { meta } of policies) {
      world.findings.push(
        mapsFinding('maps.feature-off', {
          message: 'enable-local-redirect-policy is not set, so that the policy does nothing',
          object: refOf(meta),
          origin: meta.origin,
        }),
      )
    }
    return []
  }
  return policies.flatMap((policy) => redirectsOf(world, policy))
}

function redirectsOf(world: NodeWorld, policy: CiliumLocalRedirectPolicy): readonly Redirect[] {
  const pods = world.pods.filter(
    ({ pod }) =>
      pod.nodeName === world.node &&
      pod.isReady &&
      pod.meta.namespace === policy.meta.namespace &&
      matchesSelector(policy.backends, pod.meta.labels),
  )
  return frontendsOf(world, policy).flatMap(({ ip, port, protocol, name }) => {
    const target = targetPort(policy.ports, { name, protocol })
    if (target === undefined) return []
    const backends = pods.flatMap((pod) =>
      pod.ips.filter((one) => one.ip.family === ip.family).map((one) => ({ ip: one.ip, port: target, pod })),
    )
    if (backends.length === 0 && policy.frontend.kind === 'service') return []
    return [{ policy, ip, port, protocol, backends }]
  })
}

type Frontend = { readonly ip: Ip; readonly port: number; readonly protocol: Protocol; readonly name: string }

function frontendsOf(world: NodeWorld, { frontend, meta }: CiliumLocalRedirectPolicy): readonly Frontend[] {
  if (frontend.kind === 'address') {
    const ip = parseIp(frontend.ip)
    if (ip === undefined) return []
    return frontend.ports.map(({ port, protocol, name = '' }) => ({ ip, port, protocol, name }))
  }
  const service = world.cluster.services.get(`${frontend.namespace}/${frontend.name}`)
  if (service === undefined) {
    world.findings.push(
      mapsFinding('maps.redirect-without-service', {
        message: `the input has no Service ${frontend.namespace}/${frontend.name}, so that nothing is redirected`,
        object: refOf(meta),
        origin: meta.origin,
        path: 'spec.redirectFrontend.serviceMatcher',
      }),
    )
    return []
  }
  return servicePorts(service, frontend.ports)
}

function servicePorts(service: Service, wanted: readonly RedirectPort[]): readonly Frontend[] {
  return service.clusterIPs.flatMap((text) => {
    const ip = parseIp(text)
    if (ip === undefined) return []
    return service.ports.flatMap(({ port, protocol, name }) => {
      const isWanted = wanted.length === 0 || wanted.some((one) => one.port === port && one.protocol === protocol)
      return isWanted ? [{ ip, port, protocol, name }] : []
    })
  })
}

type Wanted = { readonly name: string; readonly protocol: Protocol }

/** One port serves all frontends; several go by name. */
function targetPort(ports: readonly RedirectPort[], { name, protocol }: Wanted): number | undefined {
  if (ports.length === 1) return ports[0]?.port
  return ports.find((one) => one.name === name && one.protocol === protocol)?.port
}
