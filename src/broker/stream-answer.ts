/** Answers that are longer than memory should hold: JSON lines or a JSON array, written as the database gives pages. */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { FastifyReply } from 'fastify'
import type { Logger } from './log'

export const ndjsonMediaType = 'application/x-ndjson'

export function wantsLines(accept: string | undefined): boolean {
  return accept?.split(',').some((part) => part.trim().split(';')[0] === ndjsonMediaType) === true
}

export type Streaming<Row> = {
  readonly pages: AsyncIterable<readonly Row[]>
  readonly print: (row: Row) => unknown
  readonly as: 'lines' | 'array'
  readonly log: Logger
}

/** The first page is read before the answer begins, so that a database that is away is still told as 503. */
export async function streamAnswer<Row>(reply: FastifyReply, streaming: Streaming<Row>): Promise<FastifyReply> {
  const pages = streaming.pages[Symbol.asyncIterator]()
  const first = await pages.next()
  reply.hijack()
  reply.raw.writeHead(200, {
    ...headersOf(reply),
    'Content-Type': streaming.as === 'lines' ? `${ndjsonMediaType}; charset=utf-8` : 'application/json; charset=utf-8',
  })
  try {
    await pipeline(Readable.from(printPages(first, pages, streaming), { highWaterMark: 1 }), reply.raw)
  } catch (error) {
    // The status is long gone: a connection that breaks off tells the client that the answer is not whole.
    streaming.log.warn({ err: error }, 'an answer broke off')
    reply.raw.destroy()
  }
  return reply
}

export function headersOf(reply: FastifyReply): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(reply.getHeaders()).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  )
}

async function* printPages<Row>(
  first: IteratorResult<readonly Row[]>,
  pages: AsyncIterator<readonly Row[]>,
  { print, as }: Streaming<Row>,
): AsyncGenerator<string> {
  let separator = as === 'array' ? '[' : ''
  try {
    for (let page = first; page.done !== true; page = await pages.next()) {
      let text = ''
      for (const row of page.value) {
        text += `${separator}${JSON.stringify(print(row))}`
        if (as === 'array') separator = ','
        else text += '\n'
      }
      if (text !== '') yield text
    }
    if (as === 'array') yield separator === '[' ? '[]' : ']'
  } finally {
    await pages.return?.()
  }
}
