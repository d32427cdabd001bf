/** Reading CiliumEgressGatewayPolicy, CiliumLocalRedirectPolicy and CiliumEndpointSlice. */
import { parseIp, printIp } from '#base/ip'
import type {
  CiliumEgressGatewayPolicy,
  CiliumLocalRedirectPolicy,
  EgressGateway,
  EgressSelector,
  RedirectFrontend,
  RedirectPort,
} from '#model/cilium-network'
import type { CiliumEndpointObject, CiliumText } from '#model/cilium-policy'
import type { Meta } from '#model/meta'
import type { Protocol } from '#model/service'
import { addressAt } from './addresses'
import {
  ciliumItemsAt,
  ciliumLabelSelectorAt,
  ciliumMapAt,
  ciliumMapsAt,
  ciliumTextAt,
  ciliumTextsAt,
  isRefusedSince,
  refuse,
  tellUnknown,
} from './cilium-fields'
import { checkVersion } from './cilium-policy'
import { type Fields, has, mapAt, mapsAt, nameAt, numberAt, pathOf, plainNameAt } from './fields'
import type { Writable } from './writable'

/** Undefined for a policy that no cluster holds. */
export function parseEgressGatewayPolicy(root: Fields, meta: Meta): CiliumEgressGatewayPolicy | undefined {
  const before = root.reading.findings.length
  checkVersion(root, ['cilium.io/v2'])
  const spec = mapAt(root, 'spec')
  tellUnknown(spec, ['selectors', 'destinationCIDRs', 'excludedCIDRs', 'egressGateway', 'egressGateways'])
  for (const key of ['selectors', 'destinationCIDRs']) if (!has(spec, key)) refuse(spec, key, `${key} is wanted`)
  const single = ciliumMapAt(spec, 'egressGateway')
  const gateway = single === undefined ? undefined : gatewayOf(single)
  const policy = {
    meta,
    selectors: (ciliumMapsAt(spec, 'selectors') ?? []).map(egressSelectorOf),
    destinations: rangesAt(spec, 'destinationCIDRs'),
    excluded: rangesAt(spec, 'excludedCIDRs'),
    ...(gateway !== undefined && { gateway }),
    gateways: (ciliumMapsAt(spec, 'egressGateways') ?? []).map(gatewayOf),
  }
  return isRefusedSince(root, before) ? undefined : policy
}

function egressSelectorOf(entry: Fields): EgressSelector {
  tellUnknown(entry, ['podSelector', 'namespaceSelector', 'nodeSelector'])
  const pods = ciliumLabelSelectorAt(entry, 'podSelector')
  const namespaces = ciliumLabelSelectorAt(entry, 'namespaceSelector')
  const nodes = ciliumLabelSelectorAt(entry, 'nodeSelector')
  return {
    path: pathOf(entry, ''),
    ...(pods !== undefined && { pods }),
    ...(namespaces !== undefined && { namespaces }),
    ...(nodes !== undefined && { nodes }),
  }
}

function gatewayOf(entry: Fields): EgressGateway {
  tellUnknown(entry, ['nodeSelector', 'interface', 'egressIP'])
  if (!has(entry, 'nodeSelector')) refuse(entry, 'nodeSelector', 'nodeSelector is wanted')
  const nodeSelector = ciliumLabelSelectorAt(entry, 'nodeSelector') ?? { matchLabels: {}, matchExpressions: [] }
  const device = ciliumTextAt(entry, 'interface')
  const text = ciliumTextAt(entry, 'egressIP')
  const ip = text === undefined || text === '' ? undefined : parseIp(text)
  if (text !== undefined && text !== '' && ip === undefined) refuse(entry, 'egressIP', `"${text}" is no address`)
  return {
    path: pathOf(entry, ''),
    nodeSelector,
    ...(device !== undefined && device !== '' && { interface: device }),
    ...(ip !== undefined && { egressIp: printIp(ip) }),
  }
}

/** The CRD asks for the form alone; what the agent makes of the bits is its own matter. */
function rangesAt(spec: Fields, key: string): readonly CiliumText[] {
  const texts = ciliumTextsAt(spec, key) ?? []
  for (const [index, { text }] of texts.entries()) {
    if (!text.includes('/') || parseIp(text.split('/')[0] ?? '') === undefined) {
      refuse(spec, `${key}[${index}]`, `"${text}" is no range such as 10.0.0.0/8`)
    }
  }
  return texts
}

export function parseLocalRedirectPolicy(root: Fields, meta: Meta): CiliumLocalRedirectPolicy | undefined {
  const before = root.reading.findings.length
  checkVersion(root, ['cilium.io/v2'])
  const spec = mapAt(root, 'spec')
  const frontend = frontendOf(mapAt(spec, 'redirectFrontend'), meta.namespace)
  if (frontend === undefined) {
    refuse(spec, 'redirectFrontend', 'one of addressMatcher and serviceMatcher is wanted, and not both')
  }
  const backend = mapAt(spec, 'redirectBackend')
  const backends = ciliumLabelSelectorAt(backend, 'localEndpointSelector')
  if (backends === undefined) refuse(backend, 'localEndpointSelector', 'localEndpointSelector is wanted')
  if (isRefusedSince(root, before) || frontend === undefined || backends === undefined) return undefined
  return { meta, frontend, backends, ports: redirectPortsAt(backend) }
}

function frontendOf(fields: Fields, namespace: string): RedirectFrontend | undefined {
  if (has(fields, 'addressMatcher') === has(fields, 'serviceMatcher')) return undefined
  if (has(fields, 'addressMatcher')) {
    const matcher = mapAt(fields, 'addressMatcher')
    const ip = addressAt(matcher, 'ip')
    return ip === undefined ? undefined : { kind: 'address', ip, ports: redirectPortsAt(matcher) }
  }
  const matcher = mapAt(fields, 'serviceMatcher')
  const name = plainNameAt(matcher, 'serviceName')
  if (name === undefined) return undefined
  return {
    kind: 'service',
    name,
    namespace: plainNameAt(matcher, 'namespace') ?? namespace,
    ports: redirectPortsAt(matcher),
  }
}

function redirectPortsAt(fields: Fields): readonly RedirectPort[] {
  return (ciliumItemsAt(fields, 'toPorts') === undefined ? [] : mapsAt(fields, 'toPorts')).flatMap((entry) => {
    const port = Number(ciliumTextAt(entry, 'port'))
    const name = nameAt(entry, 'name')
    const protocol = (nameAt(entry, 'protocol') ?? 'TCP').toUpperCase() as Protocol
    if (!(Number.isInteger(port) && port > 0 && port < 65536)) {
      refuse(entry, 'port', 'a port from 1 to 65535 is wanted')
      return []
    }
    return [{ port, protocol, ...(name !== undefined && { name }) }]
  })
}

/** Many endpoints of one namespace in one object, each as its CiliumEndpoint would be. */
export function parseCiliumEndpointSlice(root: Fields, meta: Meta): readonly CiliumEndpointObject[] {
  const namespace = plainNameAt(root, 'namespace')
  if (namespace === undefined) return []
  return mapsAt(root, 'endpoints').flatMap((entry) => {
    const name = plainNameAt(entry, 'name')
    if (name === undefined) return []
    const number = numberAt(entry, 'id', { from: 1, to: 0xffffffff, noun: 'a number of an identity' })
    const addressing = mapsAt(mapAt(entry, 'networking'), 'addressing')
    const endpoint: Writable<CiliumEndpointObject> = {
      meta: { ...meta, kind: 'CiliumEndpointSlice', namespace, name },
      labels: [],
      addresses: addressing.flatMap((one) =>
        ['ipv4', 'ipv6'].flatMap((key) => (nameAt(one, key) === undefined ? [] : (addressAt(one, key) ?? []))),
      ),
    }
    if (number !== undefined) endpoint.identity = number
    return [endpoint]
  })
}
