/** From one message to its reply, in CoreDNS's order: the message, its class, its EDNS version, then the plugins (core/dnsserver). */
import type { Handler } from '#compile/dns/plugin'
import type { Client, Reply } from '#compile/dns/record'
import { badVersion, classIn, rcodes, typeName } from './codes'
import { type Query, readQuery } from './read-query'
import { writeHeader, writeRefusal, writeReply } from './write-reply'

export type Transport = 'udp' | 'tcp'

/** One line of news about a question that got a reply. */
export type Answered = {
  readonly from: string
  readonly transport: Transport
  readonly name: string
  readonly type: string
  readonly reply: Reply
}

export type Answering = {
  readonly answer: Handler
  /** Questions of other classes than IN reach the plugins, as they do when forward is one of them. */
  readonly takesOtherClasses: boolean
  /** Who is taken to ask, whatever address the message came from. */
  readonly client?: Client
  readonly note?: (answered: Answered) => void
}

type Sender = { readonly address: string; readonly transport: Transport }

/** Undefined when nothing is sent back. Never throws: a bug in answering is SERVFAIL, as CoreDNS recovers from a panic. */
export function answerMessage(message: Buffer, sender: Sender, answering: Answering): Buffer | undefined {
  const judged = readQuery(message)
  switch (judged.kind) {
    case 'drop':
      return undefined
    case 'refuse':
      return writeHeader(judged.header, judged.rcode)
    case 'query':
      try {
        return answerQuery(judged.query, sender, answering)
      } catch {
        return writeHeader(judged.query.header, rcodes.SERVFAIL)
      }
    default:
      return judged satisfies never
  }
}

function answerQuery(query: Query, { address, transport }: Sender, answering: Answering): Buffer {
  const { question, edns } = query
  if (question.class !== classIn && !answering.takesOtherClasses) return writeRefusal(query, rcodes.REFUSED)
  if (edns !== undefined && edns.version !== 0) return writeRefusal(query, badVersion)
  const name = `${question.name}.`
  const type = typeName(question.type)
  const reply = answering.answer({ name, type, client: answering.client ?? { address } })
  answering.note?.({ from: address, transport, name, type, reply })
  return writeReply(query, reply, sizeLimit(edns?.payloadSize ?? 0, transport))
}

const leastSize = 512
const mostSize = 65535

/** Over UDP what the asker says it can take, and never less than 512. */
function sizeLimit(payloadSize: number, transport: Transport): number {
  return transport === 'tcp' ? mostSize : Math.max(leastSize, payloadSize)
}
