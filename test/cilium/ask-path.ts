/** Walks through the example world of Cilium's cases: A, B, C and D are pods, as there, and node-gw is a gateway. */
import { type Ip, parseIp, printIp } from '#base/ip'
import { selectSlices } from '#compile/endpointslices/select-slices'
import { parseCluster } from '#manifests/parse-cluster'
import type { CiliumVersion } from '#model/cilium-version'
import type { Cluster } from '#model/cluster'
import { nodeIps } from '#model/node'
import type { Leg, Walk, WalkEnd, WalkInner, WalkProtocol } from '#model/walk'
import { type CiliumNet, prepareCilium } from '#trace/cilium/cilium-net'
import type { CiliumState } from '#trace/cilium/state-tables'
import { walkCilium } from '#trace/cilium/walk-cilium'
import { exampleWorld } from '../policy/ask-cilium'
import { node, type Raw } from '../policy/policy-objects'
import { worldConfig } from './ask-maps'

const pods: Readonly<Record<string, string>> = { A: 'business/a', B: 'business/b', C: 'business/c', D: 'other/d' }

/** Per-packet load balancing in pods, as the cases have it. */
const caseConfig = { ...worldConfig, 'enable-bpf-masquerade': 'true', 'bpf-lb-sock-hostns-only': 'true' }

export const nativeConfig = {
  'routing-mode': 'native',
  'auto-direct-node-routes': 'true',
  'ipv4-native-routing-cidr': '10.244.0.0/16',
}

function ciliumNode(name: string, internal: string, range: string): Raw {
  const router = range.replace(/0\/24$/, '1')
  return {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumNode',
    metadata: { name },
    spec: {
      addresses: [
        { type: 'InternalIP', ip: internal },
        { type: 'CiliumInternalIP', ip: router },
      ],
      ipam: { podCIDRs: [range] },
    },
  }
}

export const pathWorld: readonly Raw[] = [
  ...exampleWorld,
  node('node-gw', '192.168.1.20', { egress: 'true' }),
  ciliumNode('node-a', '192.168.1.10', '10.244.1.0/24'),
  ciliumNode('node-b', '192.168.1.11', '10.244.2.0/24'),
  ciliumNode('node-gw', '192.168.1.20', '10.244.3.0/24'),
]

export type PathOptions = {
  readonly config?: Readonly<Record<string, string>>
  readonly version?: CiliumVersion
  readonly world?: readonly Raw[]
  readonly devices?: ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>
}

export type PathPacket = {
  readonly protocol?: WalkProtocol
  readonly sourcePort?: number
  readonly entryNode?: string
  readonly backend?: string
  readonly isReplyWanted?: boolean
  readonly icmpType?: number
  readonly icmpCode?: number
  readonly about?: WalkInner
  /** The address that the source claims. */
  readonly as?: string
}

export type PathNet = {
  readonly net: CiliumNet
  readonly cluster: Cluster
  /** `A`, a node's name or an address to `C:8080` or the like. */
  readonly walk: (source: string, target: string, packet?: PathPacket, state?: CiliumState) => AskedWalk
}

export type AskedWalk = {
  readonly walk: Walk
  /** `allowed`, `unknown`, or the number of the drop reason. */
  readonly fate: string
  readonly back: string
  /** Trace points in their order: `from-endpoint`, `to-overlay` … */
  readonly points: readonly string[]
  /** The packet at the end of the request and of the answer: `10.244.1.10:43210 → 10.244.1.20:8080`. */
  readonly end: string
  readonly backEnd: string
  /** Rows of a node that are new, without those of ICMP twins. */
  readonly rows: (node: string) => readonly string[]
  readonly said: (words: string) => string | undefined
}

export function preparePath(objects: readonly Raw[], options: PathOptions = {}): PathNet {
  const { config = {}, version = '1.18', world = pathWorld, devices } = options
  const settings = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'cilium-config', namespace: 'kube-system' },
    data: { ...caseConfig, ...config },
  }
  const items = [...world, settings, ...objects]
  const { value: cluster } = parseCluster(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  const slices = selectSlices(cluster, 'computed').value
  const net = prepareCilium(cluster, { slices, cilium: { version }, ...(devices !== undefined && { devices }) })
  const walk: PathNet['walk'] = (source, target, packet = {}, state = undefined) => {
    const [, to = '', port = '0'] = /^\[?(.*?)\]?(?::(\d+))?$/.exec(target) ?? []
    const { protocol = 'TCP', sourcePort = 43210, isReplyWanted = true, as, icmpType = 8, ...rest } = packet
    const from = endOf(cluster, source)
    const claimed = as === undefined ? undefined : parseIp(as)
    const question = {
      source: claimed === undefined ? from : { ...from, ip: claimed },
      destination: endOf(cluster, to),
      protocol,
      sourcePort,
      port: protocol.startsWith('ICMP') ? icmpType : Number(port),
      isReplyWanted,
      ...rest,
    }
    return asked(state === undefined ? walkCilium(net, question) : walkCilium(net, question, state))
  }
  return { net, cluster, walk }
}

function endOf(cluster: Cluster, name: string): WalkEnd {
  const pod = cluster.pods.get(pods[name] ?? name)
  if (pod !== undefined) {
    return { ip: askedIp(pod.podIPs[0] ?? ''), pod, isByName: true, ...(pod.nodeName && { node: pod.nodeName }) }
  }
  const byName = cluster.nodes.get(name)
  if (byName !== undefined) return { ip: askedIp(nodeIps(byName)[0] ?? ''), node: name, isByName: true }
  const ip = askedIp(name)
  const holder = [...cluster.nodes.values()].find((one) => nodeIps(one).includes(printIp(ip)))
  return holder === undefined ? { ip } : { ip, node: holder.meta.name }
}

export function askedIp(text: string): Ip {
  const ip = parseIp(text)
  if (ip === undefined) throw new Error(`${text} is no address`)
  return ip
}

function asked(walk: Walk): AskedWalk {
  const { request, reply, after } = walk
  return {
    walk,
    fate: fateOf(request),
    back: reply === undefined ? 'none' : fateOf(reply),
    points: pointsOf(request),
    end: endText(request),
    backEnd: reply === undefined ? 'none' : endText(reply),
    rows: (node) =>
      after.filter((row) => row.node === node && row.isNew && !row.row.includes(' related ')).map(({ row }) => row),
    said: (words) => {
      const step = [...request.steps, ...(reply?.steps ?? [])].find(({ did, because }) =>
        `${did}: ${because}`.includes(words),
      )
      return step === undefined ? undefined : `${step.did}: ${step.because}`
    },
  }
}

function fateOf({ verdict, drop }: Leg): string {
  if (verdict.kind === 'allowed' || verdict.kind === 'unknown') return verdict.kind
  return drop === undefined ? verdict.kind : String(drop.number)
}

const traced =
  /\((from-endpoint|to-endpoint|from-overlay|to-overlay|from-network|to-network|to-stack|to-proxy|from-proxy|to-host|from-host)\)/g

function pointsOf({ steps }: Leg): readonly string[] {
  return steps.flatMap(({ because }) => [...because.matchAll(traced)].map(([, point]) => String(point)))
}

function endText({ steps }: Leg): string {
  const last = steps.at(-1)?.packet
  return last === undefined ? 'none' : `${last.source} → ${last.destination}`
}
