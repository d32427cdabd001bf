/** What the objects imply, in the form that dumps are read into. */
import { printEndpoint, printIp } from '#base/ip'
import { printPrefix } from '#base/prefix'
import { gatewayText } from '#compile/cilium/dump-egress'
import { portText } from '#compile/cilium/dump-policy-maps'
import type { FoundKind } from '#compile/cilium/found-map'
import type { RowSource } from '#compile/cilium/map-source'
import { type NodeMaps, protocolName } from '#compile/cilium/node-maps'
import { nodeText } from '#compile/cilium/parse-cells'
import type { EndpointPolicy } from '#compile/cilium/render-policy-maps'

export type ExpectedRow = {
  readonly fields: Readonly<Record<string, string>>
  readonly family?: 'ipv4' | 'ipv6'
  readonly source: RowSource
  /** Other values that are as right, by field. */
  readonly others?: Readonly<Record<string, readonly string[]>>
}

export type ExpectedRows = ReadonlyMap<string, ExpectedRow>

export function expectedRows(maps: NodeMaps, kind: FoundKind): ExpectedRows {
  const readers: Readonly<Record<FoundKind, () => ExpectedRows>> = {
    lxc: () => lxcRows(maps),
    ipcache: () => ipcacheRows(maps),
    policy: () => new Map(),
    services: () => serviceRows(maps),
    backends: () => backendRows(maps),
    reverseNat: () => reverseRows(maps),
    sourceRanges: () =>
      new Map(
        maps.lb.sourceRanges.map(({ prefix, source }) => [
          printPrefix(prefix),
          { fields: {}, family: prefix.ip.family, source },
        ]),
      ),
    egress: () => egressRows(maps),
    tunnels: () =>
      new Map(
        maps.tunnels.map(({ range, nodeIp, source }) => [
          printIp(range.ip),
          { fields: { node: printIp(nodeIp) }, source },
        ]),
      ),
    ipMasq: () =>
      new Map(
        maps.ipMasq.map(({ prefix, source }) => [
          printPrefix(prefix),
          { fields: {}, family: prefix.ip.family, source },
        ]),
      ),
    identities: () => new Map(),
    nodeIds: () => nodeRows(maps),
    // By numbers of the node: compared apart.
    maglev: () => new Map(),
    affinityMatch: () => new Map(),
    endpoints: () => endpointRows(maps),
  }
  return readers[kind]()
}

/** Numbers of endpoints that are made up are no news of the node. */
function lxcRows({ lxc, world }: NodeMaps): ExpectedRows {
  const madeUp = new Set(world.endpoints.filter(({ isNumbered }) => isNumbered).map(({ id }) => id))
  return new Map(
    lxc.map(({ ip, endpointId, identity, flags, source }) => {
      const own = { host: 'no', identity: String(identity), ...(!madeUp.has(endpointId) && { id: String(endpointId) }) }
      const fields: ExpectedRow['fields'] = (flags & 1) === 1 ? { host: 'yes' } : own
      return [printIp(ip), { fields, source }]
    }),
  )
}

function ipcacheRows({ ipcache }: NodeMaps): ExpectedRows {
  return new Map(
    ipcache.map(({ prefix, identity, tunnel, source }) => {
      const node = tunnel === undefined ? 'none' : nodeText(printIp(tunnel))
      return [printPrefix(prefix), { fields: { identity: String(identity), node }, source }]
    }),
  )
}

export function policyRows({ rows }: EndpointPolicy): ExpectedRows {
  return new Map(
    rows.map(({ entry, proxyPort }) => {
      const { key, isDeny, auth, origins, note } = entry
      const [first] = origins
      const direction = key.direction === 'ingress' ? 'Ingress' : 'Egress'
      const source: RowSource = {
        by: 'policy',
        ...(first !== undefined && { object: first.source.object, origin: first.source.origin, path: first.rule.path }),
        ...(note !== undefined && { note }),
      }
      const fields = {
        verdict: isDeny ? 'Deny' : 'Allow',
        proxy: proxyPort === 0 ? 'no' : 'yes',
        auth: ['disabled', 'spire', 'always-fail'][auth.type] ?? String(auth.type),
      }
      return [`${direction} ${key.identity} ${portText(key, '1.18')}`, { fields, source }]
    }),
  )
}

/** Rows for the ports that no Service has are not compared: releases differ in them. */
function serviceRows({ lb }: NodeMaps): ExpectedRows {
  return new Map(
    lb.services
      .filter(({ isWildcard }) => !isWildcard)
      .map(({ ip, port, protocol, scope, type, slots, source }) => {
        const key = `${printEndpoint(printIp(ip), port)}/${protocolName(protocol)}${scope === 'internal' ? '/i' : ''}`
        const backends = slots.map((one) => {
          const address = printEndpoint(printIp(one.ip), one.port)
          return one.protocol === 0 ? address : `${address}/${protocolName(one.protocol)}`
        })
        return [key, { fields: { type, backends: [...new Set(backends)].sort().join(' ') }, family: ip.family, source }]
      }),
  )
}

function backendRows({ lb }: NodeMaps): ExpectedRows {
  return new Map(
    lb.backends.map(({ ip, port, source }) => [
      printEndpoint(printIp(ip), port),
      { fields: {}, family: ip.family, source },
    ]),
  )
}

function reverseRows({ lb }: NodeMaps): ExpectedRows {
  return new Map(
    lb.services
      .filter(({ isWildcard }) => !isWildcard)
      .map(({ ip, port, source }) => [printEndpoint(printIp(ip), port), { fields: {}, family: ip.family, source }]),
  )
}

function nodeRows({ nodeIds, settings }: NodeMaps): ExpectedRows {
  const { families } = settings
  return new Map(
    nodeIds
      .filter(({ ip }) => families.includes(ip.family))
      .map(({ ip, spi, source }) => [printIp(ip), { fields: { spi: String(spi) }, source }]),
  )
}

function egressRows({ egress }: NodeMaps): ExpectedRows {
  return new Map(
    egress.map(({ sourceIp, destination, egressIp, gatewayIp, otherGateways, isEgressUnknown, source }) => {
      const fields = {
        gateway: gatewayText(gatewayIp),
        ...(!isEgressUnknown && { egress: nodeText(printIp(egressIp)) }),
      }
      const others = { gateway: otherGateways.map(printIp) }
      return [
        `${printIp(sourceIp)} to ${printPrefix(destination)}`,
        { fields, family: sourceIp.family, source, others },
      ]
    }),
  )
}

function endpointRows({ world }: NodeMaps): ExpectedRows {
  return new Map(
    world.endpoints.flatMap(({ ips, identity, id, isNumbered, meta, kind }) =>
      ips.map(({ ip, path }) => {
        const source: RowSource = {
          by: 'endpoints',
          path,
          ...(meta !== undefined && {
            object: { kind: meta.kind, namespace: meta.namespace, name: meta.name },
            origin: meta.origin,
          }),
          ...(kind !== 'pod' && { note: `the ${kind} endpoint` }),
        }
        return [
          printIp(ip),
          { fields: { identity: String(identity), ...(!isNumbered && { id: String(id) }) }, source },
        ] as const
      }),
    ),
  )
}
