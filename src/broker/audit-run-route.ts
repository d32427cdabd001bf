/** An audit of recorded flows on demand: page by page, so that any number of them takes the memory of one page. */
import { setImmediate as turn } from 'node:timers/promises'
import type { FastifyReply } from 'fastify'
import type { FlowFilter } from '#flows/filter'
import { type AuditReport, auditFlows, reportAudit, startAudit } from '#verify/policy/audit'
import { AuditReportRecord, printAuditReport } from '#wire/audit-record'
import { Problem } from '#wire/problem'
import { sendProblem } from './answer-problem'
import type { App } from './app'
import { isAuditPolicy, readAuditManifests } from './audit-manifests'
import { Manifests, refuse, semanticsParameters } from './audit-routes'
import { semanticsText, worldOf } from './audit-worlds'
import type { Broker } from './broker'
import { readStoreDirectory } from './store-directory'
import { closedQuery, flowParameters, readFlowFilter, v1Read } from './v1-parts'

/** A million flows take half a minute or so. */
const longestMs = 600_000

export function addAuditRunRoute(app: App, broker: Broker): void {
  app.post(
    '/api/v1/audit',
    {
      config: v1Read,
      handlerTimeout: longestMs,
      schema: {
        tags: ['v1'],
        summary: 'Try policies on recorded flows: which would be denied, by which policy, with whom',
        querystring: closedQuery({ ...flowParameters, ...semanticsParameters }),
        body: Manifests,
        response: { 200: AuditReportRecord, 400: Problem, 422: Problem, 503: Problem },
      },
    },
    async (request, reply) => {
      const { semantics, cilium, ...flowQuery } = request.query as AuditQuery
      const filter = readFlowFilter(flowQuery, broker, reply)
      if (filter === undefined) return reply
      const text = semanticsText(semantics, cilium)
      const read = readAuditManifests(request.body, text)
      if (read.errors.length > 0) return refuse(reply, read)
      if (!read.objects.some(isAuditPolicy)) {
        return refuse(reply, { objects: [], errors: [{ field: 'body', message: 'holds no policy' }] })
      }
      const release = broker.audits.take()
      if (release === undefined) {
        broker.metrics.auditDropped.inc()
        return sendProblem(reply, 'unavailable', 'as many audits as this broker does at once are running; try again')
      }
      try {
        const report = await runAudit(broker, reply, { filter, world: worldOf(read.objects, text) })
        return report === undefined ? reply : reply.send(printAuditReport(report) as never)
      } finally {
        release()
      }
    },
  )
}

type AuditQuery = {
  readonly semantics?: Parameters<typeof semanticsText>[0]
  readonly cilium?: Parameters<typeof semanticsText>[1]
}

type Asked = { readonly filter: FlowFilter; readonly world: ReturnType<typeof worldOf> }

/** Undefined when nobody waits for the answer any more. */
async function runAudit(
  { store }: Broker,
  reply: FastifyReply,
  { filter, world }: Asked,
): Promise<AuditReport | undefined> {
  const audit = startAudit(world, await readStoreDirectory(store))
  for await (const flows of store.streamFlows(filter)) {
    if (reply.raw.destroyed) return undefined
    auditFlows(audit, flows)
    // Others get their turn between two pages.
    await turn()
  }
  return reportAudit(audit)
}
