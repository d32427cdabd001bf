/** What policy sends through a proxy: marks, TPROXY, and the connection that the proxy opens in its place. */
import type { WalkPlace } from '#model/walk'
import type { NodeTables } from './node-tables'
import { ctFlags } from './state-rows'
import { type Draft, tell } from './walk-draft'

export type Redirected = {
  readonly proxyPort: number
  readonly parser: string
  readonly direction: 'ingress' | 'egress'
}

export function redirectToProxy(
  draft: Draft,
  node: NodeTables,
  at: WalkPlace,
  { proxyPort, parser, direction }: Redirected,
): void {
  const swapped = ((proxyPort & 0xff) << 8) | (proxyPort >>> 8)
  draft.packet = { ...draft.packet, mark: ((swapped << 16) | 0x200) >>> 0 }
  tell(draft, at, ['redirected to the proxy', `the entry asks for the ${parser} proxy at port ${proxyPort} (to-proxy)`])
  const stack = { node: node.name, device: 'cilium_net', hook: 'tc ingress', program: 'cil_to_host' }
  tell(draft, stack, ['handed it to the proxy', `the mark asks the stack for TPROXY to port ${proxyPort}`])
  const mark = direction === 'ingress' ? 0xa00 : 0xb00
  draft.packet = { ...draft.packet, mark }
  const proxy = {
    node: node.name,
    device: 'proxy',
    hook: 'user space',
    program: parser === 'dns' ? 'DNS proxy' : 'Envoy',
  }
  tell(draft, proxy, [
    'judged the request',
    `rules of ${parser} decide request by request; what they allow goes on (from-proxy)`,
  ])
  draft.doubts.push({
    code: 'cilium.redirected',
    sentence: `the ${parser} proxy of ${node.name} may still refuse single requests by its rules`,
  })
}

/** An answer to what the proxy sent on is the proxy's, which writes it to its own client. */
export function answerThroughProxy(draft: Draft, node: NodeTables, at: WalkPlace, flags: number): void {
  if ((flags & ctFlags.proxyRedirect) === 0) return
  tell(draft, at, ['redirected to the proxy', 'the connection’s row says that it goes through the proxy (to-proxy)'])
  const proxy = { node: node.name, device: 'proxy', hook: 'user space' }
  tell(draft, proxy, [
    'passed the answer on',
    'the proxy answers its own client, from the address that was asked (from-proxy)',
  ])
}
