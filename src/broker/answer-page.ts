/** A list under /api/v1: a page with a cursor to the next, or, when lines are accepted, all of it as they come. */
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import type { Page, PageRequest } from '#store/store'
import type { Logger } from './log'
import { readLimit, wholeNumber } from './read-limit'
import { streamAnswer, wantsLines } from './stream-answer'

export const pageParameters = {
  limit: wholeNumber('1 to 1000, 100 when absent; with lines: how many at most, all when absent'),
  cursor: Type.Optional(Type.String({ maxLength: 2000, description: '`next` of the page before' })),
}

const limitRule = { fallback: 100, least: 1, most: 1000 }
const linesRule = { fallback: Number.MAX_SAFE_INTEGER, least: 1, most: Number.MAX_SAFE_INTEGER }

export type List<Row> = {
  readonly page: (request: PageRequest) => Promise<Page<Row>>
  /** Absent: pages are asked for one after the other. */
  readonly stream?: () => AsyncIterable<readonly Row[]>
  readonly print: (row: Row) => unknown
  readonly log: Logger
}

type Asked = { readonly headers: { readonly accept?: string | undefined }; readonly query: unknown }

type PageQuery = { readonly limit?: string; readonly cursor?: string }

export async function answerPage<Row>(request: Asked, reply: FastifyReply, list: List<Row>): Promise<FastifyReply> {
  const { limit, cursor } = request.query as PageQuery
  if (wantsLines(request.headers.accept)) {
    const pages = list.stream !== undefined && cursor === undefined ? list.stream() : everyPage(list, cursor)
    return streamAnswer(reply, {
      pages: firstRows(pages, readLimit(limit, linesRule)),
      print: list.print,
      as: 'lines',
      log: list.log,
    })
  }
  const page = await list.page({ limit: readLimit(limit, limitRule), ...(cursor !== undefined && { cursor }) })
  return reply.send({ items: page.rows.map(list.print), next: page.next ?? null })
}

async function* everyPage<Row>(list: List<Row>, start: string | undefined): AsyncGenerator<readonly Row[]> {
  for (let cursor = start; ; ) {
    const page = await list.page({ limit: limitRule.most, ...(cursor !== undefined && { cursor }) })
    yield page.rows
    if (page.next === undefined) return
    cursor = page.next
  }
}

async function* firstRows<Row>(pages: AsyncIterable<readonly Row[]>, most: number): AsyncGenerator<readonly Row[]> {
  let left = most
  for await (const page of pages) {
    yield page.slice(0, left)
    left -= page.length
    if (left <= 0) return
  }
}
