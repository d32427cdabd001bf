/** What the routes under /api/v1 have in common: closed queries, times and the filter of flows. */
import type { FastifyReply } from 'fastify'
import Type, { type TProperties } from 'typebox'
import type { FlowFilter } from '#flows/filter'
import { flowQueryParameters, parseFlowQuery, type Query } from '#wire/flow-query'
import { sendProblem } from './answer-problem'
import type { Broker } from './broker'

export const v1Read = { access: 'read' as const }

/** An unknown filter would let everything through, so it is refused. */
export const closedQuery = <Parameters extends TProperties>(parameters: Parameters) =>
  Type.Object(parameters, { additionalProperties: false })

export const flowParameters = flowQueryParameters() as TProperties

/** Undefined when the query was refused. */
export function readFlowFilter(query: unknown, { clock }: Broker, reply: FastifyReply): FlowFilter | undefined {
  const { filter, errors } = parseFlowQuery(query as Query, clock.now())
  const [first] = errors
  if (first === undefined) return filter
  sendProblem(reply, 'bad-request', `${first.field} ${first.message}`, errors)
  return undefined
}

export function refuseTime(reply: FastifyReply, name: string): FastifyReply {
  const message = 'must be a time such as 2026-07-23T10:00:00Z, or an age such as -15m'
  return sendProblem(reply, 'bad-request', `query.${name} ${message}`, [{ field: `query.${name}`, message }])
}
