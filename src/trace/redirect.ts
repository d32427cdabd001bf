/** What a packet is after a rule redirected it to the node itself. */
import { type Ip, parseIp } from '#base/ip'
import { printTarget } from './nat-range'
import type { Fields } from './path'
import type { World } from './world'

/** `ports` is the text of a range, for where it is not known which of them the packet gets. */
export type RedirectPort = { readonly port: number | undefined; readonly ports: string | undefined }

export type Redirected = { readonly sent: Fields; readonly shown: string }

/**
 * A local process's packet goes to the loopback address, any other to an address of the interface it came in by
 * (nf_nat_redirect.c). Which of the node's addresses an interface has, nothing tells.
 */
export function redirectTo(world: World, fields: Fields, { port, ports }: RedirectPort): Redirected {
  const own = addressesFor(world, fields)
  const [only, ...others] = own
  const destination = others.length === 0 ? only : undefined
  const end = port ?? ports
  const unknown = end === undefined ? 'this node' : `this node:${end}`
  const shown = destination === undefined ? unknown : printTarget(destination, end)
  const sent = {
    ...fields,
    destination: destination ?? fields.destination,
    destinationPort: port,
    isDnat: true,
    isRedirected: true,
    redirectedTo: destination === undefined ? own : undefined,
    proxy: port === undefined || destination === undefined ? shown : undefined,
  }
  return { sent, shown }
}

function addressesFor(world: World, { way, family }: Fields): readonly Ip[] {
  const texts = way === 'process' ? [family === 'ipv4' ? '127.0.0.1' : '::1'] : [...(world.nodeIps ?? [])]
  return texts.flatMap((text) => parseIp(text) ?? []).filter((ip) => ip.family === family)
}
