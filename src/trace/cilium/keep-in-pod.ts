/** What a pod sends to itself without a translation on the way: no program but those at its socket sees it. */
import { printIp } from '#base/ip'
import { staysWithSender } from '../own-address'
import { destinationText } from './flow-packet'
import { end, type Next } from './next'
import { backAtSocket } from './socket-lb'
import { arrive, type Draft, endpointName, tell } from './walk-draft'

/** Also after a socket was given a backend that is the pod itself; per packet the way leads out and back (169.254.42.1). */
export function keepInPod(
  draft: Draft,
  { node, endpoint }: Extract<Next, { readonly kind: 'from-pod' }>,
): Next | undefined {
  const { packet } = draft
  const own = endpoint.ips.map(({ ip }) => ip)
  if (!staysWithSender(packet.destination, own)) return undefined
  const name = endpointName(endpoint)
  const why = `${printIp(packet.destination)} is the pod’s own: its kernel keeps the packet, and no policy is asked`
  tell(draft, { node: node.name, device: `lo of ${name}`, hook: 'loopback' }, ['stayed in the pod', why])
  backAtSocket(draft, node, { title: endpoint.title, isHost: false })
  if (draft.targets.length === 0) draft.targets.push({ address: destinationText(packet), share: 1 })
  const sentence = `it reaches ${name} on ${node.name} as ${destinationText(packet)} without leaving the pod`
  return end(arrive(draft, 'cilium.kept-in-pod', sentence, { kind: 'pod', node: node.name, endpoint }))
}
