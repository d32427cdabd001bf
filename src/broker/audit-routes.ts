/** Policies in audit mode, under /api/v1: put, read, removed, and what they have come to. */
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { ciliumVersions } from '#model/cilium-version'
import type { AuditKey, AuditObjects, StoredAuditObject } from '#store/audit-store'
import {
  AuditPolicyList,
  AuditPolicyWhole,
  AuditSummaryRecord,
  printAuditPolicy,
  printAuditSummary,
} from '#wire/audit-record'
import { Problem } from '#wire/problem'
import { word } from '#wire/schema-parts'
import { sendProblem, yamlTypes } from './answer-problem'
import type { App } from './app'
import { isAuditPolicy, type ReadManifests, readAuditManifests } from './audit-manifests'
import { semanticsText, semanticsWords } from './audit-worlds'
import type { Broker } from './broker'
import { closedQuery, v1Read } from './v1-parts'

const tags = ['v1']
const config = { access: 'admin' as const }

export const semanticsParameters = {
  semantics: Type.Optional(word(semanticsWords, 'how policies are read: k8s when absent')),
  cilium: Type.Optional(word(ciliumVersions, 'with semantics=cilium: its version, 1.18 when absent')),
}

export const Manifests = Type.Unknown({
  description:
    'manifests as YAML (Content-Type: application/yaml), or an object, a List or an array as JSON; an empty list is no policy',
})

/**
 * Manifests may be YAML on these paths, and on no others. Plain text is taken too: a page of another origin can send it
 * unasked with POST alone, and what is posted here is only tried.
 */
export function takeYaml(app: App): void {
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, takesYaml: true }
  })
  app.addContentTypeParser([...yamlTypes], { parseAs: 'string' }, (_request, body, done) => done(null, body))
}

export function addAuditRoutes(app: App, broker: Broker): void {
  addWhole(app, broker)
  addOne(app, broker)
  app.get(
    '/api/v1/audit/summary',
    {
      config: v1Read,
      schema: { tags, summary: 'What the policies in audit mode have come to', response: { 200: AuditSummaryRecord } },
    },
    async () => printAuditSummary(await broker.store.audit.summary()),
  )
}

function addWhole(app: App, { store, clock }: Broker): void {
  const path = '/api/v1/audit/policies'
  app.get(
    path,
    { config: v1Read, schema: { tags, summary: 'Policies in audit mode', response: { 200: AuditPolicyList } } },
    async () => printList(await store.audit.objects()),
  )
  app.put(
    path,
    {
      config,
      schema: {
        tags,
        summary: 'Put policies into audit mode, in place of all that are there; what is unchanged keeps its counters',
        querystring: closedQuery(semanticsParameters),
        body: Manifests,
        response: { 200: AuditPolicyList, 422: Problem },
      },
    },
    async ({ body, query: { semantics, cilium } }, reply) => {
      const read = readAuditManifests(body, semanticsText(semantics, cilium))
      if (read.errors.length > 0) return refuse(reply, read)
      return printList(await store.audit.put(read.objects, { isWhole: true, now: clock.now() }))
    },
  )
  app.delete(
    path,
    {
      config,
      schema: { tags, summary: 'Take all policies out of audit mode', response: { 200: removedAnswer } },
    },
    async () => ({ removed: await store.audit.remove('all') }),
  )
}

const removedAnswer = Type.Object({ removed: Type.Integer() })

const oneParams = Type.Object({
  namespace: Type.String({ description: '- for a cluster-scoped policy' }),
  name: Type.String(),
})
const kindQuery = closedQuery({
  kind: Type.Optional(Type.String({ description: 'needed where policies of two kinds have one name' })),
})

function addOne(app: App, { store, clock }: Broker): void {
  const path = '/api/v1/audit/policies/:namespace/:name'
  app.get(
    path,
    {
      config: v1Read,
      schema: {
        tags,
        summary: 'A policy in audit mode, with its manifest',
        params: oneParams,
        querystring: kindQuery,
        response: { 200: AuditPolicyWhole, 404: Problem, 409: Problem },
      },
    },
    async ({ params, query }, reply) => {
      const found = findOne(await store.audit.objects(), params, query.kind, reply)
      return found === undefined ? reply : { ...printAuditPolicy(found), manifest: found.manifest }
    },
  )
  app.put(
    path,
    {
      config,
      schema: {
        tags,
        summary: 'Put one policy into audit mode; other objects of the manifest may be what it reads',
        params: oneParams,
        querystring: closedQuery(semanticsParameters),
        body: Manifests,
        response: { 200: AuditPolicyList, 422: Problem },
      },
    },
    async ({ body, params, query: { semantics, cilium } }, reply) => {
      const read = readAuditManifests(body, semanticsText(semantics, cilium))
      if (read.errors.length > 0) return refuse(reply, read)
      const policies = read.objects.filter(isAuditPolicy)
      const [policy] = policies
      if (policies.length !== 1 || policy === undefined || !isNamed(policy, params)) {
        const given = policies.map(({ kind, namespace, name }) => `${kind} ${namespace || '-'}/${name}`).join(', ')
        const message = `must hold one policy, named ${params.namespace}/${params.name}; it holds ${given || 'none'}`
        return refuse(reply, { objects: [], errors: [{ field: 'body', message }] })
      }
      return printList(await store.audit.put(read.objects, { isWhole: false, now: clock.now() }))
    },
  )
  app.delete(
    path,
    {
      config,
      schema: {
        tags,
        summary: 'Take one policy out of audit mode; its verdicts stay until retention',
        params: oneParams,
        querystring: kindQuery,
        response: { 200: removedAnswer, 404: Problem, 409: Problem },
      },
    },
    async ({ params, query }, reply) => {
      const found = findOne(await store.audit.objects(), params, query.kind, reply)
      return found === undefined ? reply : { removed: await store.audit.remove([found]) }
    },
  )
}

type OneParams = { readonly namespace: string; readonly name: string }

function isNamed(key: AuditKey, { namespace, name }: OneParams): boolean {
  return key.name === name && key.namespace === (namespace === '-' ? '' : namespace)
}

/** Undefined when the request was refused. */
function findOne(
  { objects }: AuditObjects,
  params: OneParams,
  kind: string | undefined,
  reply: FastifyReply,
): StoredAuditObject | undefined {
  const found = objects.filter((object) => isNamed(object, params) && (kind === undefined || object.kind === kind))
  const [first, second] = found
  if (first !== undefined && second === undefined) return first
  const name = `${params.namespace}/${params.name}`
  if (first === undefined) sendProblem(reply, 'not-found', `no policy ${name} is in audit mode`)
  else {
    const kinds = found.map((one) => one.kind).join(' and ')
    sendProblem(reply, 'conflict', `${kinds} have the name ${name}; add kind= to say which`)
  }
  return undefined
}

export function refuse(reply: FastifyReply, { errors }: ReadManifests): FastifyReply {
  const [first] = errors
  return sendProblem(reply, 'wrong-fields', `${first?.field} ${first?.message}`, errors)
}

function printList({ generation, objects }: AuditObjects): AuditPolicyList {
  return { generation, items: objects.map(printAuditPolicy) }
}
