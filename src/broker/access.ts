/** Who may call what: each route declares one scope, and a route that declares none is closed to everybody. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sendProblem } from './answer-problem'
import type { Scope, TokenBook } from './tokens'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** `open` needs no token. */
    access?: 'open' | Scope
    /** The body may be YAML. */
    takesYaml?: boolean
  }
}

export type Guard = {
  readonly tokens: TokenBook
  /** Without a token only the name of this machine is answered to: a web page could give the address another name. */
  readonly hostsAllowed: ((host: string) => boolean) | undefined
}

/**
 * Runs after routing, on the route that was found: whatever way a path was written, it is the route’s own scope that counts.
 * Returns true when the request may go on. Which of no, a wrong and a narrow token it was is told as RFC 6750 (section 3.1) has it.
 */
export function mayPass(guard: Guard, request: FastifyRequest, reply: FastifyReply): boolean {
  if (guard.hostsAllowed !== undefined && !guard.hostsAllowed(request.hostname)) {
    sendProblem(reply, 'not-allowed', `the broker is not known as ${request.hostname}; ask it as localhost`)
    return false
  }
  // An unknown path is told as such: it hides nothing, the routes are public.
  if (request.is404) return true
  const { access } = request.routeOptions.config
  if (access === 'open') return true
  if (guard.tokens.isOpen && access !== undefined) return true
  const token = tokenOf(request)
  if (token === undefined) {
    reply.header('WWW-Authenticate', 'Bearer')
    const isOther = request.headers.authorization !== undefined
    const what = isOther ? 'the Authorization header holds no bearer token' : 'this path needs a token'
    sendProblem(reply, 'not-authenticated', `${what}; send it as Authorization: Bearer TOKEN`)
    return false
  }
  const scopes = guard.tokens.scopesOf(token)
  if (scopes === undefined) {
    reply.header('WWW-Authenticate', 'Bearer error="invalid_token"')
    const remedy = 'check that it is whole, and of this broker'
    sendProblem(reply, 'not-authenticated', `the token is none that this broker knows; ${remedy}`)
    return false
  }
  if (access !== undefined && scopes.includes(access)) return true
  const scope = access === undefined ? '' : `, scope="${access}"`
  reply.header('WWW-Authenticate', `Bearer error="insufficient_scope"${scope}`)
  sendProblem(reply, 'not-allowed', `the token does not have the scope ${access ?? 'of this path'}; use one that has`)
  return false
}

function tokenOf({ headers }: FastifyRequest): string | undefined {
  return /^Bearer +([\x21-\x7e]+) *$/i.exec(headers.authorization ?? '')?.[1]
}

/** Names that lead to this machine and nowhere else. */
export function isLoopbackName(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  return name === 'localhost' || name.endsWith('.localhost') || isLoopbackAddress(name)
}

export function isLoopbackAddress(address: string): boolean {
  return /^127\.\d+\.\d+\.\d+$/.test(address) || address === '::1' || address === '[::1]'
}
