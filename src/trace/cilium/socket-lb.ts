/** Load balancing at sockets: the destination is the backend before there is a packet. Mirrors bpf/bpf_sock.c, Cilium 1.16 to 1.19. */
import { printEndpoint, printIp } from '#base/ip'
import type { WalkPlace } from '#model/walk'
import { findAtSocket, isSkippedAtSocket } from './find-service'
import { isIcmp, rewriteDestination } from './flow-packet'
import type { NodeTables } from './node-tables'
import { selectBackend } from './select-backend'
import { type Draft, type Ending, stateOf, tell, tellRewrite } from './walk-draft'

/** `pod` is absent for a process of the host. An ending where connect fails. */
export type SocketOwner = { readonly title: string; readonly isHost: boolean }

export function atSocket(draft: Draft, node: NodeTables, owner: SocketOwner): Ending | undefined {
  if (!isBalancedAtSocket(draft, owner)) return undefined
  const { packet, net } = draft
  const at = socketPlace(draft, node, owner)
  const { row, lookups } = findAtSocket(net, node, { packet, isHost: owner.isHost })
  if (row === undefined) {
    tell(draft, at, ['looked for a Service', 'the destination is no Service’s frontend'], { lookups })
    return undefined
  }
  if (isSkippedAtSocket(node, row, packet)) {
    tell(draft, at, ['left the destination', 'external addresses of other hosts are not taken over at sockets'], {
      lookups,
    })
    return undefined
  }
  const { source } = row
  if (row.slots.length === 0) {
    const sentence = 'the Service has no backends: connect fails with EHOSTUNREACH, and no packet is sent'
    tell(draft, at, ['refused the connection', sentence], { lookups, source })
    const object = source.object === undefined ? {} : { object: source.object }
    return {
      verdict: { kind: 'rejected', because: [{ code: 'cilium.no-backend', sentence, ...object }] },
      stop: { kind: 'nowhere' },
    }
  }
  tell(draft, at, ['found the Service', serviceText(row.type, row.slots.length)], { lookups })
  const backend = selectBackend(draft, node, at, { service: row, place: 'socket' })
  if (backend === undefined) return undefined
  const frontend = printEndpoint(printIp(packet.destination), packet.port)
  const family = packet.destination.family
  const written = rewriteDestination(packet, backend, 'cgroup')
  const to = printEndpoint(printIp(backend.ip), backend.port)
  stateOf(draft, node).sockets.set(`${to} ${frontend}`, { backend: to, frontend, family, revNat: row.revNat })
  tellRewrite(draft, at, ['translated the socket', 'packets go to the backend from the first one on'], written)
  return undefined
}

export function serviceText(type: string, count: number): string {
  return `frontend of type ${type} with ${count === 1 ? '1 backend' : `${count} backends`}`
}

/** Pods too, unless it is for the host's namespace alone; SCTP never. */
export function isBalancedAtSocket({ net, packet }: Draft, { isHost }: SocketOwner): boolean {
  const { hasSocketLb, isSocketLbForHostOnly } = net.path
  if (isIcmp(packet.protocol) || packet.protocol === 'SCTP') return false
  return isHost ? hasSocketLb || net.settings.replacesKubeProxy : hasSocketLb && !isSocketLbForHostOnly
}

function socketPlace({ packet }: Draft, { name }: NodeTables, { title }: SocketOwner): WalkPlace {
  const digit = packet.destination.family === 'ipv4' ? 4 : 6
  const call = packet.protocol === 'UDP' ? 'sendmsg' : 'connect'
  return {
    node: name,
    device: `socket of ${title}`,
    hook: `cgroup/${call}${digit}`,
    program: `cil_sock${digit}_${call}`,
  }
}

/** The socket's answer comes from the frontend that was connected to. */
export function backAtSocket(draft: Draft, node: NodeTables, owner: SocketOwner): void {
  const { packet } = draft
  const source = printEndpoint(printIp(packet.source), packet.sourcePort)
  const row = [...stateOf(draft, node).sockets.values()].find(({ backend }) => backend === source)
  if (row === undefined) return
  const digit = packet.source.family === 'ipv4' ? 4 : 6
  const call = packet.protocol === 'UDP' ? 'recvmsg' : 'getpeername'
  const at = {
    node: node.name,
    device: `socket of ${owner.title}`,
    hook: `cgroup/${call}${digit}`,
    program: `cil_sock${digit}_${call}`,
  }
  const lookup = { map: `cilium_lb${digit}_reverse_sk`, key: source, value: `${row.frontend} RevNAT=${row.revNat}` }
  tell(draft, at, ['named the frontend', `the process sees ${row.frontend} as its peer; the packet stays as it is`], {
    lookups: [lookup],
  })
}
