/** The packet that a recorded flow tells of, as it would go between the objects now; of an answer the request that it answers. */
import { familyOf, type Ip, parseIp, printIp } from '#base/ip'
import type { RecordedEnd, RecordedFlow } from '#flows/recorded-flow-hubble'
import type { Cluster } from '#model/cluster'
import { nodeIps } from '#model/node'
import type { WalkEnd, WalkQuestion } from '#model/walk'
import { hasEnded } from '#trace/policy/party-facts'

/** Undefined where an address cannot be read. */
export function askOfFlow(cluster: Cluster, flow: RecordedFlow): WalkQuestion | undefined {
  const source = endOf(cluster, flow.source)
  const destination = endOf(cluster, flow.destination)
  if (source === undefined || destination === undefined) return undefined
  const { protocol, isReply, sourcePort, port, icmpCode, node } = flow
  const isIcmp = protocol === 'ICMP' || protocol === 'ICMPv6'
  const isTurned = isReply === true && !isIcmp
  const [from, to] = isReply ? [destination, source] : [source, destination]
  return {
    source: from,
    destination: to,
    protocol,
    sourcePort: isTurned ? port : sourcePort,
    port: isIcmp && isReply ? requestType(port) : isTurned ? sourcePort : port,
    ...(icmpCode !== undefined && isError(flow) && { icmpCode }),
    isReplyWanted: isReply === true,
    ...(from.pod === undefined &&
      from.node === undefined &&
      node !== undefined &&
      cluster.nodes.has(node) && { entryNode: node }),
  }
}

/** Of ICMP what is about another packet, which no record tells. */
export function isError({ protocol, port }: Pick<RecordedFlow, 'protocol' | 'port'>): boolean {
  return protocol === 'ICMP' ? [3, 11, 12].includes(port) : protocol === 'ICMPv6' && port < 128
}

function requestType(type: number): number {
  return type === 0 ? 8 : type === 129 ? 128 : type
}

/** A pod by its name, where the input still has it: it is the policy for it that is asked, whatever address it has now. */
function endOf({ pods, nodes }: Cluster, { address, namespace, pod: name }: RecordedEnd): WalkEnd | undefined {
  const recorded = parseIp(address)
  if (recorded === undefined) return undefined
  const named = name === undefined ? undefined : pods.get(`${namespace}/${name}`)
  const own = named === undefined || hasEnded(named) ? undefined : addressOf(named.podIPs, recorded)
  if (named !== undefined && own !== undefined) {
    return { ip: own, pod: named, ...(named.nodeName !== undefined && { node: named.nodeName }) }
  }
  const node = [...nodes.values()].find((one) => nodeIps(one).includes(address))
  if (node !== undefined) return { ip: recorded, node: node.meta.name }
  const holder = [...pods.values()].find((one) => one.podIPs.includes(address) && !hasEnded(one))
  if (holder === undefined) return { ip: recorded }
  return { ip: recorded, pod: holder, ...(holder.nodeName !== undefined && { node: holder.nodeName }) }
}

function addressOf(texts: readonly string[], like: Ip): Ip | undefined {
  const text = printIp(like)
  const found = texts.includes(text) ? text : texts.find((one) => familyOf(one) === like.family)
  return found === undefined ? undefined : parseIp(found)
}
