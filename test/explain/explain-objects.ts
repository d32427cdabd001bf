/** A small cluster as raw objects, and what `explain` says of one of its Services. */
import { parseSave } from '../../src/compile/iptables/parse-save'
import type { ExplainInput, NodeRuleset } from '../../src/explain/explain-input'
import { explainService } from '../../src/explain/explain-service'
import type { Explanation, Layer, LayerName } from '../../src/explain/explanation'
import { parseCluster } from '../../src/manifests/parse-cluster'

export type Raw = Readonly<Record<string, unknown>>

const meta = (name: string, more: Raw = {}): Raw => ({ name, namespace: 'shop', ...more })

export function rawNode(letter: string, zone?: string): Raw {
  const number = letter.charCodeAt(0) - 96
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: `node-${letter}`,
      ...(zone !== undefined && { labels: { 'topology.kubernetes.io/zone': zone } }),
    },
    spec: { podCIDRs: [`10.244.${number}.0/24`] },
    status: {
      addresses: [{ type: 'InternalIP', address: `192.168.50.1${number}` }],
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  }
}

export function rawPod(name: string, ip: string, fields: Raw = {}): Raw {
  const { labels = { app: 'web' }, isReady = true, ports, node = 'node-a', ips = [ip], isLeaving, phase } = fields
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: meta(name, { labels, ...(isLeaving === true && { deletionTimestamp: '2026-10-05T08:12:31Z' }) }),
    spec: {
      nodeName: node,
      containers: [{ name: 'main', image: 'web', ports: ports ?? [{ name: 'http', containerPort: 8080 }] }],
    },
    status: {
      phase: phase ?? 'Running',
      podIPs: (ips as readonly string[]).map((one) => ({ ip: one })),
      conditions: [{ type: 'Ready', status: isReady === true ? 'True' : 'False' }],
    },
  }
}

export function rawService(spec: Raw = {}, more: Raw = {}): Raw {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: meta('web', more),
    spec: {
      clusterIP: '10.96.0.20',
      clusterIPs: ['10.96.0.20'],
      ipFamilies: ['IPv4'],
      selector: { app: 'web' },
      ports: [{ name: 'http', port: 80, targetPort: 'http' }],
      ...spec,
    },
  }
}

export function rawSlice(name: string, endpoints: readonly Raw[], fields: Raw = {}): Raw {
  const { labels = {}, ports = [{ name: 'http', port: 8080, protocol: 'TCP' }], type = 'IPv4' } = fields
  const managed = { 'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io' }
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: meta(name, { labels: { 'kubernetes.io/service-name': 'web', ...managed, ...(labels as Raw) } }),
    addressType: type,
    ports,
    endpoints,
  }
}

export const twoNodes = [rawNode('a'), rawNode('b')]
export const twoPods = [rawPod('web-0', '10.244.1.5'), rawPod('web-1', '10.244.2.7', { node: 'node-b' })]

/** Explains `shop/web` unless another key is given. */
export function explain(
  objects: readonly Raw[],
  options: Partial<ExplainInput> & { readonly key?: string } = {},
): Explanation {
  const { value: cluster, findings } = parseCluster(JSON.stringify(objects), 'cluster.json')
  const { key = 'shop/web', ...rest } = options
  const service = (rest.cluster ?? cluster).services.get(key)
  if (service === undefined) throw new Error(`no Service ${key} among the objects of this test`)
  return explainService({
    cluster,
    service,
    findings,
    settings: { detectLocal: { kind: 'ClusterCIDR', cidrs: ['10.244.0.0/16'] } },
    nodeRulesets: [],
    ...rest,
  })
}

/** The codes found, in order. */
export function codesOf({ findings }: Pick<Explanation, 'findings'>): readonly string[] {
  return findings.map(({ code }) => code)
}

export function layerIn({ layers }: Explanation, name: LayerName): Layer {
  const found = layers.find(({ layer }) => layer === name)
  if (found === undefined) throw new Error(`no layer ${name}`)
  return found
}

/** A node's rules from the text of its save. */
export function rulesetFrom(save: string, node?: string): NodeRuleset {
  const { rulesets, signs } = parseSave(save, 'node.save')
  return { files: ['node.save'], rulesets, sets: new Map(), signs, ...(node !== undefined && { node }) }
}
