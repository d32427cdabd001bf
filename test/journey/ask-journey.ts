/** Questions about packets of a small cluster whose nodes run kube-proxy. */
import { canonicalIp, parseIp } from '#base/ip'
import { selectSlices } from '#compile/endpointslices/select-slices'
import { parseCluster } from '#manifests/parse-cluster'
import type { Leg, Walk, WalkEnd, WalkInner, WalkProtocol } from '#model/walk'
import { type JourneySetting, type JourneyWorld, journeyWorld } from '#trace/journey/journey-world'
import { walkJourney } from '#trace/journey/walk-journey'
import { node, pod, type Raw } from '../policy/policy-objects'

/** Three nodes; a, b and c are pods of `shop`, a and b of the first node. */
export const nodes = [1, 2, 3].map((number) => ({
  ...node(`n${number}`, `192.168.1.${number}`),
  spec: { podCIDRs: [`10.244.${number}.0/24`] },
}))

export const pods = [
  pod('shop/a', { app: 'client' }, { ip: '10.244.1.10' }),
  pod('shop/b', { app: 'web' }, { ip: '10.244.1.20' }),
  pod('shop/c', { app: 'web' }, { ip: '10.244.2.30', nodeName: 'n2' }),
]

export function web(spec: Raw = {}): Raw {
  const ports = [{ port: 80, targetPort: 8080, nodePort: 30080 }]
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'shop', name: 'web' },
    spec: { type: 'NodePort', clusterIP: '10.96.0.50', selector: { app: 'web' }, ports, ...spec },
  }
}

export type Ask = {
  readonly objects?: readonly Raw[]
  readonly datapath?: 'iptables' | 'nftables'
  readonly setting?: Partial<JourneySetting>
}

export function world({ objects = [web()], datapath = 'iptables', setting = {} }: Ask = {}): JourneyWorld {
  const items = [...nodes, ...pods, ...objects]
  const { value: cluster } = parseCluster(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  const slices = selectSlices(cluster, 'computed').value
  const detectLocal = { kind: 'ClusterCIDR', cidrs: ['10.244.0.0/16'] } as const
  return journeyWorld({ cluster, slices, datapath, settings: { detectLocal }, seed: 1, ...setting })
}

export type AskWalk = {
  readonly protocol?: WalkProtocol
  readonly sourcePort?: number
  readonly entryNode?: string
  readonly backend?: string
  readonly icmpType?: number
  readonly icmpCode?: number
  readonly about?: WalkInner
  readonly isReplyWanted?: boolean
}

/** `shop/a`, `node/n1` or an address; to `shop/b:8080` or `ip:port`. */
export function walk(one: JourneyWorld, source: string, target: string, asked: AskWalk = {}): Walk {
  const { icmpType = 8, ...more } = asked
  const at = target.lastIndexOf(':')
  const host = target.slice(0, at).replace(/^\[(.*)\]$/, '$1')
  const [to, port] = more.protocol === 'ICMP' ? [target, icmpType] : [host, Number(target.slice(at + 1))]
  return walkJourney(one, {
    source: endOf(one, source),
    destination: endOf(one, to),
    protocol: 'TCP',
    sourcePort: 40000,
    port,
    isReplyWanted: true,
    ...more,
  })
}

function endOf({ setting: { cluster } }: JourneyWorld, text: string): WalkEnd {
  const own = cluster.pods.get(text)
  const name = text.startsWith('node/') ? text.slice(5) : undefined
  const address = own?.podIPs[0] ?? cluster.nodes.get(name ?? '')?.addresses[0]?.address ?? canonicalIp(text)
  const ip = parseIp(address ?? '')
  if (ip === undefined) throw new Error(`${text} has no address`)
  return { ip, ...(own !== undefined && { pod: own }), ...(name !== undefined && { node: name }) }
}

/** `n1 PREROUTING: sent to …`, one a step. */
export function steps(leg: Leg | undefined): readonly string[] {
  return (leg?.steps ?? []).map(({ at, did, share }) => {
    const part = share === undefined ? '' : ` (${Math.round(share * 100)} %)`
    return `${at.node ?? 'world'} ${at.device ?? ''}${at.device === undefined ? '' : ' '}${at.hook}: ${did}${part}`
  })
}

export function rows(walked: Walk): readonly string[] {
  return walked.after.map(({ node: name, row, table }) => `${name} ${table === 'conntrack' ? '' : `${table} `}${row}`)
}
