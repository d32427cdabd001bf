/** Questions to the maps of a node of the example world of Cilium's cases. */
import { dumpMaps } from '#compile/cilium/dump-maps'
import type { DumpedMap, DumpedRow } from '#compile/cilium/dumped-map'
import { type NodeMaps, nodeMaps } from '#compile/cilium/node-maps'
import type { WorldOptions } from '#compile/cilium/node-world'
import { printHex } from '#compile/cilium/struct-bytes'
import { selectSlices } from '#compile/endpointslices/select-slices'
import { parseCluster } from '#manifests/parse-cluster'
import type { CiliumVersion } from '#model/cilium-version'
import { exampleWorld } from '../policy/ask-cilium'
import type { Raw } from '../policy/policy-objects'

export type AskOptions = Partial<Pick<WorldOptions, 'node' | 'learned' | 'devices'>> & {
  readonly version?: CiliumVersion
  /** Of the ConfigMap cilium-config. */
  readonly config?: Readonly<Record<string, string>>
  readonly world?: readonly Raw[]
}

export type AskedMaps = {
  readonly maps: NodeMaps
  readonly dumped: readonly DumpedMap[]
  readonly map: (name: string) => DumpedMap
  readonly row: (name: string, key: string) => DumpedRow | undefined
  /** `key → value` as they are printed. */
  readonly texts: (name: string) => readonly string[]
  readonly codes: readonly string[]
}

export const worldConfig = {
  'routing-mode': 'tunnel',
  'kube-proxy-replacement': 'true',
  'enable-ipv4': 'true',
  'enable-ipv6': 'false',
  'enable-egress-gateway': 'true',
}

export function askMaps(objects: readonly Raw[], options: AskOptions = {}): AskedMaps {
  const { node = 'node-a', version = '1.18', config = worldConfig, world = exampleWorld, learned, devices } = options
  const settings = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'cilium-config', namespace: 'kube-system' },
    data: config,
  }
  const items = [...world, settings, ...objects]
  const { value: cluster, findings } = parseCluster(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  const slices = selectSlices(cluster, 'computed').value
  const maps = nodeMaps(cluster, {
    node,
    slices,
    cilium: { version },
    ...(learned !== undefined && { learned }),
    ...(devices !== undefined && { devices }),
  })
  const dumped = dumpMaps(maps)
  const map = (name: string): DumpedMap => {
    const found = dumped.find(({ layout }) => layout.name === name)
    if (found === undefined) throw new Error(`no map ${name}`)
    return found
  }
  return {
    maps,
    dumped,
    map,
    row: (name, key) => map(name).rows.find((one) => one.key === key),
    texts: (name) => map(name).rows.map(({ key, value }) => `${key} → ${value.trim()}`),
    codes: [...findings, ...maps.findings].map(({ code }) => code),
  }
}

/** Blanks between bytes are left out. */
export function hex(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? 'none' : printHex(bytes).replaceAll(' ', '')
}

export function service(path: string, spec: Raw, meta: Raw = {}): Raw {
  const [namespace, name] = path.split('/')
  const plain = { selector: { app: 'server' }, ports: [{ port: 80, targetPort: 8080 }], clusterIP: '10.96.0.50' }
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name, ...meta },
    spec: { ...plain, ...spec },
  }
}

export function egressPolicy(spec: Raw = {}, name = 'egress'): Raw {
  return {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumEgressGatewayPolicy',
    metadata: { name },
    spec: {
      selectors: [{ podSelector: { matchLabels: { app: 'client' } } }],
      destinationCIDRs: ['0.0.0.0/0'],
      excludedCIDRs: ['10.0.0.0/8'],
      egressGateway: { nodeSelector: { matchLabels: { egress: 'true' } }, egressIP: '203.0.113.10' },
      ...spec,
    },
  }
}
