/** Health, metrics, versions and what is known of the cluster. */
import Type from 'typebox'
import { word } from '#wire/schema-parts'
import type { App } from './app'
import type { Broker } from './broker'

const Health = Type.Object({ status: Type.String(), database: Type.String(), schema: Type.String() })

/** The shape that front ends of the compatible API read: there is no check for newer versions here. */
const Version = Type.Object({
  broker: Type.String(),
  chart: Type.String(),
  telemetry_enabled: Type.Boolean(),
  latest: Type.Null(),
  checked_at: Type.Null(),
  update_available: Type.Boolean(),
})

const Environment = Type.Object({
  cni: Type.String({ description: 'unknown: agents do not report it' }),
  ip_family: word(['ipv4', 'ipv6', 'dual', 'unknown'], 'of the living pods’ addresses; unknown while there are none'),
  policy_enforcement: Type.String({ description: 'unknown: agents do not report it' }),
  nodes: Type.Integer({ description: 'those that living pods are on' }),
})

export function addStatusRoutes(app: App, { store, metrics, version }: Broker): void {
  app.get(
    '/health',
    {
      config: { access: 'open', rateLimit: false },
      schema: { tags: ['compatible'], summary: 'Whether the database answers', response: { 200: Health, 503: Health } },
    },
    async (_request, reply) => {
      const { reachable, schemaReady } = await store.health()
      const isWell = reachable && schemaReady
      if (!isWell) reply.code(503).header('Retry-After', 5)
      return {
        status: isWell ? 'ok' : 'unavailable',
        database: reachable ? 'reachable' : 'away',
        schema: schemaReady ? 'ready' : 'not ready',
      }
    },
  )
  app.get(
    '/metrics',
    {
      config: { access: 'open', rateLimit: false },
      schema: {
        tags: ['compatible'],
        summary: 'Prometheus metrics',
        response: { 200: { description: 'As text.', content: { 'text/plain': { schema: Type.String() } } } },
      },
    },
    async (_request, reply) =>
      reply
        .type(metrics.registry.contentType)
        .serializer(String)
        .send(await metrics.registry.metrics()),
  )
  app.get(
    '/version',
    {
      config: { access: 'read' },
      schema: { tags: ['compatible'], summary: 'The version of the broker', response: { 200: Version } },
    },
    async () => ({
      broker: version,
      chart: 'unknown',
      telemetry_enabled: false,
      latest: null,
      checked_at: null,
      update_available: false,
    }),
  )
  app.get(
    '/cluster/environment',
    {
      config: { access: 'read' },
      schema: {
        tags: ['compatible'],
        summary: 'What is known of the cluster; unknown is what front ends take for no hint',
        response: { 200: Environment },
      },
    },
    async () => {
      const { nodes, families } = await store.extent()
      const family = families[0] ?? ('unknown' as const)
      return {
        cni: 'unknown',
        ip_family: families.length === 2 ? ('dual' as const) : family,
        policy_enforcement: 'unknown',
        nodes,
      }
    },
  )
}
