/** Which node is the gateway of an egress policy, and which address it lends. Mirrors pkg/egressgateway, Cilium 1.16 to 1.19. */
import { type Family, type Ip, parseIp, printIp } from '#base/ip'
import { compareText } from '#base/text'
import type { CiliumEgressGatewayPolicy, EgressGateway } from '#model/cilium-network'
import { isAtLeast } from '#model/cilium-version'
import { refOf } from '#model/meta'
import { matchesSelector } from '#model/selector'
import { mapsFinding } from './findings'
import type { NodeWorld } from './node-world'
import { nodeAddresses } from './render-lxc'

export type ChosenGateway = {
  /** Absent where no node is selected. */
  readonly gatewayIp?: Ip
  readonly node?: string
  /** Absent on other nodes, and where the gateway has no such address. */
  readonly egressIp?: Ip
  /** The node is this one, and nothing of the input tells its address. */
  readonly isUnknown: boolean
  readonly path: string
}

/** By address; of several each pod has one, by a hash that the agent takes of its endpoint's uid. */
export function gatewaysOf(
  world: NodeWorld,
  policy: CiliumEgressGatewayPolicy,
  family: Family,
): readonly ChosenGateway[] {
  const all = [...(policy.gateway === undefined ? [] : [policy.gateway]), ...listed(world, policy)]
  const chosen = all.map((gateway) => chooseGateway(world, policy, { gateway, family }))
  if (chosen.length < 2) return chosen
  const found = chosen.filter(({ gatewayIp }) => gatewayIp !== undefined)
  const text = ({ gatewayIp }: ChosenGateway): string => (gatewayIp === undefined ? '' : printIp(gatewayIp))
  return found.length === 0 ? chosen.slice(0, 1) : found.sort((a, b) => compareText(text(a), text(b)))
}

function listed(world: NodeWorld, { gateways, meta }: CiliumEgressGatewayPolicy): readonly EgressGateway[] {
  if (gateways.length === 0 || isAtLeast(world.settings.policy.version, '1.18')) return gateways
  world.findings.push(
    mapsFinding('maps.egress-invalid', {
      message: `Cilium ${world.settings.policy.version} does not know egressGateways, which came with 1.18`,
      object: refOf(meta),
      origin: meta.origin,
      path: 'spec.egressGateways',
    }),
  )
  return []
}

type Wanted = { readonly gateway: EgressGateway; readonly family: Family }

/** The first node by name; its InternalIP of IPv4, for IPv6 as well. */
function chooseGateway(
  world: NodeWorld,
  policy: CiliumEgressGatewayPolicy,
  { gateway, family }: Wanted,
): ChosenGateway {
  const { path } = gateway
  const names = [...world.cluster.nodes.keys()].sort(compareText)
  const node = names.find((name) =>
    matchesSelector(gateway.nodeSelector, world.cluster.nodes.get(name)?.meta.labels ?? {}),
  )
  const gatewayIp = node === undefined ? undefined : internalIp(world, node, 'ipv4')
  if (node === undefined || gatewayIp === undefined) {
    tellNone(world, policy, { gateway, node })
    return { isUnknown: false, path }
  }
  if (node !== world.node) return { gatewayIp, node, isUnknown: false, path }
  const found = egressIpOf(world, policy, { gateway, family })
  return {
    gatewayIp,
    node,
    path,
    isUnknown: found === 'unknown',
    ...(typeof found === 'object' && { egressIp: found }),
  }
}

type NoGateway = { readonly gateway: EgressGateway; readonly node: string | undefined }

/** Rows of both families name the gateway by its IPv4 address. */
function tellNone({ findings }: NodeWorld, { meta }: CiliumEgressGatewayPolicy, { gateway, node }: NoGateway): void {
  const why =
    node === undefined ? 'its nodeSelector selects no node' : `${node}, which it selects, has no InternalIP of IPv4`
  findings.push(
    mapsFinding('maps.egress-no-gateway', {
      message: `${why}, so that the traffic it selects is dropped with reason 194`,
      object: refOf(meta),
      origin: meta.origin,
      path: `${gateway.path}.nodeSelector`,
      hint:
        node === undefined
          ? 'label a node, or delete the policy'
          : 'give the node an address of IPv4, or select another one',
    }),
  )
}

function internalIp(world: NodeWorld, name: string, family: Family): Ip | undefined {
  return nodeAddresses(world, name).find(({ ip, type }) => type === 'InternalIP' && ip.family === family)?.ip
}

/**
 * The address of egressIP if a device has it, the first of the interface, or the first of the device with the default
 * route: of devices the input knows what the caller tells and what the Node object does.
 */
function egressIpOf(
  world: NodeWorld,
  policy: CiliumEgressGatewayPolicy,
  { gateway, family }: Wanted,
): Ip | 'unknown' | undefined {
  const { interface: device, egressIp, path } = gateway
  const tell = (message: string, at: string, hint?: string): void => {
    const { meta } = policy
    const told = { message, object: refOf(meta), origin: meta.origin, path: `${path}.${at}` }
    world.findings.push(mapsFinding('maps.egress-address', hint === undefined ? told : { ...told, hint }))
  }
  if (egressIp !== undefined) {
    const ip = parseIp(egressIp)
    if (ip?.family !== family) return undefined
    if (hasAddress(world, egressIp)) return ip
    tell(`no device of ${world.node} has ${egressIp}, so that the traffic is dropped there with reason 204`, 'egressIP')
    return undefined
  }
  if (device !== undefined) {
    const own = world.devices.get(device)
    if (own === undefined) {
      tell(
        `nothing tells the addresses of ${device} on ${world.node}`,
        'interface',
        `name them: --device ${device}=ADDRESS`,
      )
      return 'unknown'
    }
    return own.flatMap((text) => parseIp(text) ?? []).find((ip) => ip.family === family)
  }
  return internalIp(world, world.node, family)
}

/** Where the caller names no device, an address is taken to be there, as the Node object tells few of them. */
function hasAddress(world: NodeWorld, text: string): boolean {
  if (world.devices.size === 0) return true
  if ([...world.devices.values()].some((own) => own.includes(text))) return true
  return nodeAddresses(world, world.node).some(({ ip }) => printIp(ip) === text)
}
