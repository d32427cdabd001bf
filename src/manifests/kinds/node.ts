/** Nodes: addresses, pod ranges, allocatable CPU, readiness, and the taints that keep pods away. */
import { describeValue } from '#manifests/text/raw-object'
import type { Meta } from '#model/meta'
import type { ClusterNode, NodeAddress } from '#model/node'
import { addressAt, cidrAt, cidrsAt } from './addresses'
import { conditionAt, type Fields, flagAt, itemsAt, mapAt, mapsAt, nameAt, report } from './fields'
import type { Writable } from './writable'

export type Taint = { readonly key: string; readonly value: string; readonly effect: string }

/** What the scheduler asks of a node, beside its labels. */
export type NodeRules = { readonly taints: readonly Taint[]; readonly isUnschedulable: boolean }

export function parseNode(root: Fields, meta: Meta): Writable<ClusterNode> {
  const spec = mapAt(root, 'spec')
  const status = mapAt(root, 'status')
  const node: Writable<ClusterNode> = {
    meta,
    addresses: mapsAt(status, 'addresses').flatMap((entry) => parseAddress(entry) ?? []),
    podCIDRs: parseRanges(spec),
    isReady: conditionAt(status, 'Ready') ?? false,
  }
  const milliCpu = parseMilliCpu(mapAt(status, 'allocatable'))
  if (milliCpu !== undefined) node.allocatableMilliCpu = milliCpu
  return node
}

export function parseNodeRules(root: Fields): NodeRules {
  const spec = mapAt(root, 'spec')
  const taints = mapsAt(spec, 'taints').map((entry) => ({
    key: nameAt(entry, 'key') ?? '',
    value: nameAt(entry, 'value') ?? '',
    effect: nameAt(entry, 'effect') ?? '',
  }))
  return { taints, isUnschedulable: flagAt(spec, 'unschedulable', 'it counts as false') ?? false }
}

/** Host names and DNS names stay as they are; everything else must be an address. */
function parseAddress(entry: Fields): NodeAddress | undefined {
  const type = nameAt(entry, 'type') ?? 'InternalIP'
  const address = type.endsWith('IP') ? addressAt(entry, 'address') : nameAt(entry, 'address')
  return address === undefined ? undefined : { type, address }
}

function parseRanges(spec: Fields): readonly string[] {
  if (itemsAt(spec, 'podCIDRs').length > 0) return cidrsAt(spec, 'podCIDRs')
  const range = cidrAt(spec, 'podCIDR')
  return range === undefined ? [] : [range]
}

/** Kubernetes quantities of CPU: `4`, `"1.5"`, `"3920m"`. */
function parseMilliCpu(allocatable: Fields): number | undefined {
  const value = allocatable.values.cpu
  if (value === undefined || value === null) return undefined
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : ''
  const match = /^(\d+(?:\.\d+)?)(m?)$/.exec(text)
  if (match === null) {
    report(allocatable, 'cpu', {
      code: 'manifest.bad-value',
      message: `${describeValue(value)} is no amount of CPU; it is left out`,
    })
    return undefined
  }
  return Math.round(Number(match[1]) * (match[2] === 'm' ? 1 : 1000))
}
