/** A question about a part of the packet, or a fact of the node, that the trace was not told. */
import { askOnPath } from '../ask-source'
import type { Test } from '../question'
import type { View } from '../view'

export type PacketQuestion = {
  /** What is asked, as a statement that may hold: `ip ttl 64`. */
  readonly what: string
  readonly subject: 'packet' | 'fact'
  readonly usual?: boolean
}

export function askPacket(view: View, { what, subject, usual = false }: PacketQuestion): Test {
  const isSentence = / is | has | it /.test(what)
  const no = isSentence ? what.replace(/ (is|has) /, ' $1 not ') : `${what} does not hold`
  return askOnPath(view.path, {
    key: `nft:${what}`,
    subject: { kind: subject },
    yes: isSentence ? what : `${what} holds`,
    no,
    usual,
  })
}
