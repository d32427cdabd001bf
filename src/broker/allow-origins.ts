/** Which web pages of other origins may read answers: those that were named, and none by default. */
import type { App } from './app'

const headers = 'Authorization, Content-Type, Idempotency-Key, Last-Event-ID'

/** Before the guard: a preflight carries no token. */
export function addAllowedOrigins(app: App, origins: readonly string[]): void {
  if (origins.length === 0) return
  app.addHook('onRequest', async (request, reply) => {
    const { origin } = request.headers
    reply.header('Vary', 'Origin')
    if (origin === undefined || !(origins.includes('*') || origins.includes(origin))) return undefined
    reply.header('Access-Control-Allow-Origin', origins.includes('*') ? '*' : origin)
    if (request.method !== 'OPTIONS') return undefined
    return reply
      .header('Access-Control-Allow-Methods', 'GET, POST, OPTIONS')
      .header('Access-Control-Allow-Headers', headers)
      .header('Access-Control-Max-Age', '3600')
      .code(204)
      .send()
  })
}
