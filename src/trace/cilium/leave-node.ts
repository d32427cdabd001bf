/** A packet leaves a node: into the tunnel, through the NIC, over the wire. Mirrors cil_to_overlay of bpf/bpf_overlay.c and cil_to_netdev of bpf/bpf_host.c, Cilium 1.16 to 1.19. */
import { isSameIp, parseEndpoint, printEndpoint, printIp } from '#base/ip'
import { containsIp } from '#base/prefix'
import { podRanges } from '#compile/cilium/render-ipcache'
import { identityNumbers } from '#compile/identities/numbers'
import { isAtLeast } from '#model/cilium-version'
import type { WalkInner, WalkPlace } from '#model/walk'
import { askPolicy } from './ask-policy'
import { requestGateway } from './egress-gateway'
import { encrypt } from './encrypt'
import { isRemoteNode } from './find-service'
import {
  destinationText,
  isError,
  type NewEnd,
  reversePacket,
  rewriteSource,
  sourceText,
  type Wrapping,
} from './flow-packet'
import { translateError, withInside } from './icmp-error'
import { needsMasquerade, type Translation, translateSource } from './masquerade'
import { type Encapsulation, end, type Next } from './next'
import { type NodeTables, worldOf } from './node-tables'
import { createCt, isReply, kernelKey, lookUpCt } from './state-tables'
import { arrive, type Draft, drop, type Ending, onDevice, stateOf, tell, tellRewrite, unknown } from './walk-draft'

/** A node's own traffic travels as remote-node. */
export function encapsulate(draft: Draft, { node, at, to, identity, why, lookups }: Encapsulation): Next {
  const { net, packet } = draft
  const source = net.internalIp(node.name, to.family)
  const place = onDevice(node.name, at.device, at.hook, at.program)
  if (source === undefined) {
    return end(
      unknown(draft, place, 'cilium.no-node-address', `${node.name} has no address to send to ${printIp(to)} from`),
    )
  }
  const carried = identity === identityNumbers.host ? identityNumbers['remote-node'] : identity
  const isGeneve = net.settings.tunnelProtocol === 'geneve'
  const wrapping: Wrapping = {
    kind: isGeneve ? 'Geneve' : 'VXLAN',
    source,
    destination: to,
    port: net.path.tunnelPort,
    identity: carried,
  }
  draft.packet = { ...packet, wrappings: [...packet.wrappings, wrapping] }
  const name = net.identityName(carried)
  const isXdp = at.hook === 'xdp'
  const reached = `the tunnel’s packet to ${printIp(to)}`
  tell(
    draft,
    place,
    [
      'encapsulated',
      `${why}; the header carries identity ${carried} (${name}) by ${isXdp ? 'bpf_xdp_adjust_head' : 'bpf_skb_set_tunnel_key'} (to-overlay)`,
    ],
    { lookups },
  )
  if (isXdp) return { kind: 'leave', node, identity: carried, isTranslated: true, isXdp, why: reached }
  const device = isGeneve ? 'cilium_geneve' : 'cilium_vxlan'
  tell(draft, onDevice(node.name, device, 'tc egress', 'cil_to_overlay'), [
    'marked as overlay',
    'what the tunnel carries is not translated again',
  ])
  return { kind: 'leave', node, identity: carried, isTranslated: true, why: reached }
}

type Leaving = Extract<Next, { readonly kind: 'leave' }>

export function leave(draft: Draft, { node, why, isTranslated = false, isXdp = false, identity }: Leaving): Next {
  if (isXdp) {
    const driver = onDevice(node.name, 'NIC', 'xdp', 'cil_xdp_entry')
    tell(draft, driver, ['sent back out by XDP_TX', `${why}; neither tc nor the stack sees it`])
    return { kind: 'wire', from: node }
  }
  const at = onDevice(node.name, 'NIC', 'tc egress', 'cil_to_netdev')
  tell(draft, at, ['leaves through the NIC', why])
  const fire = isTranslated ? undefined : hostFirewall(draft, node, at, identity)
  if (fire !== undefined) return fire
  const refused = encrypt(draft, node, at)
  if (refused !== undefined) return end(refused)
  const isWrapped = draft.packet.wrappings.length > 0
  if (!isTranslated && !isWrapped) {
    const diverted = toGateway(draft, node, at, identity)
    if (diverted !== undefined) return diverted
    const ended = masquerade(draft, node, at)
    if (ended !== undefined) return ended
  }
  if (draft.packet.mark !== undefined) draft.packet = withoutMark(draft.packet)
  return { kind: 'wire', from: node }
}

function withoutMark({ mark: _, ...packet }: Draft['packet']): Draft['packet'] {
  return packet
}

/** What the host sends is judged by its own policies, where the host firewall is on. */
function hostFirewall(draft: Draft, node: NodeTables, at: WalkPlace, identity: number): Next | undefined {
  const host = node.maps.world.endpoints.find(({ kind }) => kind === 'host')
  if (identity !== identityNumbers.host || host === undefined || !node.maps.settings.policy.hasHostFirewall)
    return undefined
  const ct = lookUpCt(stateOf(draft, node), draft.packet, 'egress')
  if (ct.result === 'REPLY' || ct.result === 'RELATED') return undefined
  const there = node.ipcache(draft.packet.destination).row
  const to = there?.identity ?? worldOf(node, draft.packet.destination)
  const fate = askPolicy(draft, node, at, { endpoint: host, direction: 'egress', identity: to })
  if ('ending' in fate) return end(fate.ending)
  if (ct.result === 'NEW') createCt(stateOf(draft, node), draft.packet, { direction: 'OUT', sourceIdentity: identity })
  return undefined
}

/** From 1.18 on the egress gateway is asked for here. */
function toGateway(draft: Draft, node: NodeTables, at: WalkPlace, own: number): Next | undefined {
  if (!isAtLeast(draft.net.settings.policy.version, '1.18')) return undefined
  const { packet } = draft
  if (isReply(stateOf(draft, node), packet)) return undefined
  const there = node.ipcache(packet.destination).row
  const identity = there?.identity ?? worldOf(node, packet.destination)
  return requestGateway(draft, node, at, { identity, own })
}

/** Of ICMP requests of echoes have a mapping; their answers and neighbours' messages pass as they are. */
function translate(draft: Draft, node: NodeTables, at: WalkPlace, answer: Translation): Ending | undefined {
  const { icmpType } = draft.packet
  if (icmpType === undefined || icmpType === 8 || icmpType === 128) return translateSource(draft, node, at, answer)
  if (icmpType !== 0 && ![129, 135, 136].includes(icmpType)) return translateError(draft, node, at)
  tell(draft, at, ['kept the source', 'answers of echoes and messages between neighbours are not translated'])
  return undefined
}

function masquerade(draft: Draft, node: NodeTables, at: WalkPlace): Next | undefined {
  if (!draft.net.path.isBpfMasquerade) return masqueradeByKernel(draft, node)
  const answer = needsMasquerade(draft, node)
  const { lookups, why } = answer
  if (answer.kind === 'no') {
    tell(draft, at, ['kept the source', why], { lookups })
    return undefined
  }
  if (answer.kind === 'no-address') return end(drop(draft, at, 204, { sentence: why }))
  const ended = translate(draft, node, at, answer)
  return ended === undefined ? undefined : end(ended)
}

/** Cilium's rules of iptables: pods' packets to what is outside the native range, not through its own devices. */
function masqueradeByKernel(draft: Draft, node: NodeTables): Next | undefined {
  const { packet, net } = draft
  const { family } = packet.source
  const at: WalkPlace = { node: node.name, hook: 'POSTROUTING', program: 'CILIUM_POST_nat' }
  const own = net.internalIp(node.name, family)
  const isOwnPod = podRanges(net).some(({ name, prefix }) => name === node.name && containsIp(prefix, packet.source))
  const native = net.path.nativeRanges[family]
  const isNative =
    native === undefined
      ? podRanges(net).some(({ name, prefix }) => name === node.name && containsIp(prefix, packet.destination))
      : containsIp(native, packet.destination)
  const there = node.ipcache(packet.destination).row
  const isNode = !net.settings.isTunnel && there !== undefined && isRemoteNode(there.identity)
  if (isError(packet)) return errorByKernel(draft, node, at)
  const isAnswer = isReply(stateOf(draft, node), packet)
  if (!net.path.masquerades[family] || !isOwnPod || isNative || isNode || isAnswer || own === undefined) {
    const why = isAnswer ? 'the kernel translates a connection’s first packet alone' : 'no rule of masquerading matches'
    tell(draft, at, ['kept the source', why])
    return undefined
  }
  const to = { ip: own, port: packet.sourcePort }
  const written = rewriteSource(packet, to, 'tc')
  const changes = written.changes.map(({ by: _, ...change }) => ({ ...change, by: 'netfilter' }))
  stateOf(draft, node).kernel.set(kernelKey(reversePacket(written.packet)), {
    ip: packet.source,
    port: packet.sourcePort,
  })
  tellRewrite(
    draft,
    at,
    [
      'translated the source',
      'enable-bpf-masquerade is off: Cilium’s rules of iptables masquerade; the port is kept where it is free',
    ],
    { packet: written.packet, changes },
  )
  return undefined
}

/** The kernel translates an error by the connection that it is about, and no other (nf_nat_icmp_reply_translation). */
function errorByKernel(draft: Draft, node: NodeTables, at: WalkPlace): undefined {
  const { packet } = draft
  const { about } = packet
  const found =
    about === undefined ? undefined : [...stateOf(draft, node).kernel].find(([key, to]) => isAnswerTo(key, to, about))
  const own = found === undefined ? undefined : parseEndpoint(found[0].split(' -> ')[1] ?? '')
  if (about === undefined || own?.port === undefined) {
    tell(draft, at, [
      'kept the source',
      'the kernel masquerades no error but those about a connection that it translates',
    ])
    return undefined
  }
  const outer = rewriteSource(packet, { ip: own.ip, port: packet.sourcePort }, 'tc')
  const inside = { ...about, destination: own.ip, port: own.port }
  const { changes, ...written } = withInside({ packet, outer }, inside)
  tellRewrite(draft, at, ['translated the error', 'the kernel’s connection tracking knows what it is about'], {
    ...written,
    changes: changes.map((change) => ({ ...change, by: 'netfilter' })),
  })
  return undefined
}

function isAnswerTo(key: string, to: NewEnd, about: WalkInner): boolean {
  const from = printEndpoint(printIp(about.source), about.sourcePort)
  return (
    key.startsWith(`${about.protocol.toLowerCase()} ${from} -> `) &&
    isSameIp(to.ip, about.destination) &&
    to.port === about.port
  )
}

/** To the node that has the outermost address, to the node of a pod, or out of the cluster. */
export function wire(draft: Draft, from: NodeTables | undefined): Next {
  const { packet, net } = draft
  const outer = packet.wrappings.at(-1)
  const destination = outer?.destination ?? packet.destination
  const name = net.nodeOfAddress(destination) ?? routedTo(draft, from)
  const node = name === undefined ? undefined : net.node(name)
  if (node !== undefined && node.name !== from?.name) return { kind: 'from-netdev', node }
  const at: WalkPlace = { hook: 'wire' }
  if (node !== undefined) {
    return end(
      unknown(
        draft,
        at,
        'cilium.routes',
        `the routes of ${node.name} decide about ${printIp(destination)}, and no object tells them`,
      ),
    )
  }
  tell(draft, at, ['left the cluster', `${destinationText(packet)} sees it come from ${sourceText(packet)}`])
  if (draft.targets.length === 0) draft.targets.push({ address: destinationText(packet), share: 1 })
  return end(
    arrive(draft, 'cilium.left', `it leaves the cluster for ${destinationText(packet)} as ${sourceText(packet)}`, {
      kind: 'outside',
    }),
  )
}

/** By the node's own route, or else by the network's, which is taken to know each pod's node. */
function routedTo({ packet, net }: Draft, from: NodeTables | undefined): string | undefined {
  const route = from?.maps.routes.find(
    ({ destination, via }) => via !== undefined && containsIp(destination, packet.destination),
  )
  const via = route?.via === undefined ? undefined : net.nodeOfAddress(route.via)
  return via ?? net.nodeOfPod(packet.destination)
}
