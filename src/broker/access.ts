/** Who may call what: each route declares one scope, and a route that declares none is closed to everybody. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sendProblem } from './answer-problem'
import type { Scope, TokenBook } from './tokens'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** `open` needs no token. */
    access?: 'open' | Scope
  }
}

export type Guard = {
  readonly tokens: TokenBook
  /** Without a token only the name of this machine is answered to: a web page could give the address another name. */
  readonly hostsAllowed: ((host: string) => boolean) | undefined
}

/**
 * Runs after routing, on the route that was found: whatever way a path was written, it is the route’s own scope that counts.
 * Returns true when the request may go on.
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
  const scopes = scopesOf(guard.tokens, request)
  if (scopes === undefined) {
    reply.header('WWW-Authenticate', 'Bearer')
    sendProblem(reply, 'not-authenticated', 'this path needs a token; send it as Authorization: Bearer TOKEN')
    return false
  }
  if (access !== undefined && scopes.includes(access)) return true
  sendProblem(reply, 'not-allowed', `the token does not have the scope ${access ?? 'of this path'}; use one that has`)
  return false
}

function scopesOf(tokens: TokenBook, request: FastifyRequest): readonly Scope[] | undefined {
  const match = /^Bearer +([\x21-\x7e]+) *$/i.exec(request.headers.authorization ?? '')
  return match?.[1] === undefined ? undefined : tokens.scopesOf(match[1])
}

/** Names that lead to this machine and nowhere else. */
export function isLoopbackName(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  return name === 'localhost' || name.endsWith('.localhost') || isLoopbackAddress(name)
}

export function isLoopbackAddress(address: string): boolean {
  return /^127\.\d+\.\d+\.\d+$/.test(address) || address === '::1' || address === '[::1]'
}
