/** The connections a node's kernel keeps, with both directions: what a packet was translated to is in the reply. */
import type { KernelNode } from './kernel-node'
import { inside } from './namespace'
import { mustRun } from './run-command'

type Tuple = {
  readonly source: string
  readonly destination: string
  readonly sourcePort?: number
  readonly destinationPort?: number
  readonly icmpId?: number
}

/** A reply comes from the translated destination and goes to the translated source. */
export type Connection = {
  readonly protocol: string
  readonly original: Tuple
  readonly reply: Tuple
  readonly mark: number
}

export function readConnections(node: KernelNode): Connection[] {
  const families = ['ipv4', 'ipv6'].map((family) =>
    mustRun(inside(node.namespace, ['conntrack', '--dump', '--family', family])),
  )
  return families.join('').split('\n').flatMap(parseConnection)
}

/** Forgets all of them, so that the next packet of any is a first one again. */
export function flushConnections(node: KernelNode): void {
  mustRun(inside(node.namespace, ['conntrack', '--flush']))
}

/** `udp 17 29 src=… dst=… sport=… dport=… [UNREPLIED] src=… dst=… sport=… dport=… mark=0 use=1` */
function parseConnection(line: string): Connection[] {
  const protocol = /^(\S+)\s+\d+ /.exec(line)?.[1]
  const [original, reply] = line.split(/(?=\bsrc=)/).slice(1)
  if (protocol === undefined || original === undefined || reply === undefined) return []
  const mark = Number(/\bmark=(\d+)/.exec(line)?.[1] ?? 0)
  return [{ protocol, original: parseTuple(original), reply: parseTuple(reply), mark }]
}

function parseTuple(text: string): Tuple {
  const field = (name: string): string | undefined => new RegExp(`\\b${name}=(\\S+)`).exec(text)?.[1]
  const [sourcePort, destinationPort, icmpId] = [field('sport'), field('dport'), field('id')]
  return {
    source: field('src') ?? '',
    destination: field('dst') ?? '',
    ...(sourcePort === undefined ? {} : { sourcePort: Number(sourcePort) }),
    ...(destinationPort === undefined ? {} : { destinationPort: Number(destinationPort) }),
    ...(icmpId === undefined ? {} : { icmpId: Number(icmpId) }),
  }
}
