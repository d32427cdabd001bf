/** Pods on the compatible paths. */
import Type from 'typebox'
import { canonicalAddress } from '#flows/address'
import { parseInstant } from '#flows/instant'
import type { StoredPod } from '#store/store'
import { checkDeath, checkPod } from '#wire/check-report'
import { PodRecord, PostedDeath, PostedPod, printPodRecord, readPostedPod } from '#wire/pod-record'
import { Problem } from '#wire/problem'
import { blankAsNull } from '#wire/traffic-row'
import { hasErrors, refuseFields } from './answer-problem'
import type { App } from './app'
import type { Broker } from './broker'
import { takeRows } from './read-limit'
import { streamAnswer } from './stream-answer'

const tags = ['compatible']

/** The words that clients of these paths look for. */
export const noDataFound = 'No data found'

export function addPodRoutes(app: App, broker: Broker): void {
  addPodWrites(app, broker)
  addPodReads(app, broker)
  addPodByAddress(app, broker)
}

function addPodWrites(app: App, { store, clock, log }: Broker): void {
  app.post(
    '/pod/spec',
    {
      config: { access: 'ingest' },
      schema: {
        tags,
        summary: 'Report a pod',
        body: PostedPod,
        response: { 200: Type.Union([PodRecord, PostedPod]), 422: Problem },
      },
    },
    async ({ body }, reply) => {
      if (body.pod_name.trim() === '') {
        log.warn('a pod without a name was posted; it is not stored')
        return body
      }
      const now = clock.now()
      const pod = readPostedPod(body)
      const errors = checkPod(pod)
      if (hasErrors(errors)) return refuseFields(reply, errors)
      const stored = await store.putPod(pod, now)
      if (body.is_dead === true) {
        const { name, namespace, uid } = pod
        await store.markDead({ name, namespace, ...(uid !== null && { uid }) }, now)
      }
      if (stored === undefined) return body
      return { ...printPodRecord(stored), is_dead: body.is_dead === true || stored.isDead }
    },
  )
  app.post(
    '/pod/mark_dead',
    {
      config: { access: 'ingest' },
      schema: {
        tags,
        summary: 'Report that a pod is no more',
        body: PostedDeath,
        response: { 200: Type.Integer({ description: 'pods that became dead' }), 422: Problem },
      },
    },
    async ({ body }, reply) => {
      if (body.pod_name.trim() === '') return 0
      const errors = checkDeath(body)
      if (hasErrors(errors)) return refuseFields(reply, errors)
      const [address, namespace, uid] = [body.pod_ip, body.pod_namespace, body.pod_uid].map(blankAsNull)
      if (address == null) log.warn({ pod: body.pod_name }, 'a pod is marked dead by its name alone')
      return store.markDead(
        {
          name: body.pod_name,
          ...(address != null && { address }),
          ...(namespace != null && { namespace }),
          ...(uid != null && { uid }),
        },
        clock.now(),
      )
    },
  )
}

function addPodReads(app: App, { store, log }: Broker): void {
  app.get(
    '/pod/info',
    {
      config: { access: 'read' },
      schema: { tags, summary: 'Every pod, the newest of each name', response: { 200: Type.Array(PodRecord) } },
    },
    async (_request, reply) =>
      streamAnswer(reply, { pages: newestOfEachName(store.streamPods({})), print: printPodRecord, as: 'array', log }),
  )
  app.get(
    '/pod/list/:node',
    {
      config: { access: 'read' },
      schema: {
        tags,
        summary: 'The living pods of a node',
        params: Type.Object({ node: Type.String() }),
        response: { 200: Type.Array(PodRecord) },
      },
    },
    async ({ params: { node } }) => {
      const pods = await takeRows(store.streamPods({ nodeName: node, isDead: false }), mostOfANode)
      return pods.map(printPodRecord)
    },
  )
  app.get(
    '/pod/name/:name',
    {
      config: { access: 'read' },
      schema: {
        tags,
        summary: 'The newest pod of a name',
        params: Type.Object({ name: Type.String() }),
        querystring: Type.Object({ namespace: Type.Optional(Type.String({ description: 'of any when absent' })) }),
        response: { 200: PodRecord, 404: Type.String() },
      },
    },
    async ({ params: { name }, query: { namespace } }, reply) => {
      const pod = await store.podByName(name, blankAsNull(namespace) ?? undefined)
      return pod === undefined
        ? reply.code(404).type('text/plain').serializer(String).send(noDataFound)
        : printPodRecord(pod)
    },
  )
}

/** A kubelet runs some hundreds. */
const mostOfANode = 20_000

/** Pods come by namespace and name, the newest first: a name has one record on these paths. */
async function* newestOfEachName(pages: AsyncIterable<readonly StoredPod[]>): AsyncGenerator<readonly StoredPod[]> {
  let last: StoredPod | undefined
  for await (const page of pages) {
    const kept: StoredPod[] = []
    for (const pod of page) {
      if (pod.name !== last?.name || pod.namespace !== last.namespace) kept.push(pod)
      last = pod
    }
    yield kept
  }
}

function addPodByAddress(app: App, { store }: Broker): void {
  app.get(
    '/pod/ip/:ip',
    {
      config: { access: 'read' },
      schema: {
        tags,
        summary: 'The pod that has an address, or had it at a time',
        params: Type.Object({ ip: Type.String() }),
        querystring: Type.Object({
          at: Type.Optional(
            Type.String({ description: 'RFC 3339 with any offset, or UTC without one; blank: as if absent' }),
          ),
        }),
        response: { 200: PodRecord, 400: Type.String(), 404: Type.String() },
      },
    },
    async ({ params: { ip }, query }, reply) => {
      const given = blankAsNull(query.at)
      const at = given === null ? undefined : parseInstant(given.trim())
      const text = reply.type('text/plain').serializer(String)
      if (given !== null && at === undefined) {
        return text.code(400).send(`at=${given} is no time; write 2026-07-23T10:00:00Z, any offset, or UTC without one`)
      }
      const pod = await store.podAt(canonicalAddress(ip), at)
      if (pod === undefined) return text.code(404).send(noDataFound)
      return reply.type('application/json').serializer(JSON.stringify).send(printPodRecord(pod))
    },
  )
}
