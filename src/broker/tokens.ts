/** Bearer tokens: which there are, what each may do, and a comparison that takes the same time whatever is sent. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { Failure } from '#base/failure'
import { listOf } from '#base/text'

export type Scope = 'read' | 'ingest' | 'admin'

export type GivenToken = {
  /** Where it was given, to name it without showing it. */
  readonly source: string
  readonly value: string
  readonly scopes: readonly Scope[]
}

export type TokenBook = {
  /** Without any token everybody may do everything. */
  readonly isOpen: boolean
  readonly warnings: readonly string[]
  /** What the bearer of a token may do, or undefined when the token is none of ours. */
  readonly scopesOf: (token: string) => readonly Scope[] | undefined
}

/** The variables of the compatible API; supply-chain routes are not served here, so that token opens nothing. */
export const tokenVariables: Readonly<Record<string, readonly Scope[]>> = {
  BROKER_TOKEN_READ: ['read'],
  BROKER_TOKEN_INGEST: ['ingest', 'read'],
  BROKER_TOKEN_SUPPLYCHAIN: [],
  BROKER_TOKEN_ADMIN: ['admin', 'ingest', 'read'],
  BROKER_AUTH_TOKEN: ['ingest', 'read'],
}

export const tokenFlags: Readonly<Record<Scope, readonly Scope[]>> = {
  read: ['read'],
  ingest: ['ingest', 'read'],
  admin: ['admin', 'ingest', 'read'],
}

export function tokensOfEnvironment(environment: Readonly<Record<string, string | undefined>>): readonly GivenToken[] {
  return Object.entries(tokenVariables).flatMap(([source, scopes]) => {
    const value = environment[source]?.trim() ?? ''
    return value === '' ? [] : [{ source, value, scopes }]
  })
}

const shortest = 16

export function buildTokenBook(given: readonly GivenToken[]): TokenBook {
  refuseDoubles(given)
  refuseUnsendable(given)
  const known = given.map(({ value, scopes }) => ({ digest: digestOf(value), scopes }))
  return {
    isOpen: given.length === 0,
    warnings: given
      .filter(({ value }) => value.length < shortest)
      .map(({ source }) => `${source} has fewer than ${shortest} characters and can be guessed; take a longer one`),
    scopesOf: (token) => {
      const digest = digestOf(token)
      // Every known token is compared, so that the time tells nothing of which one came near.
      let found: readonly Scope[] | undefined
      for (const one of known) if (timingSafeEqual(one.digest, digest)) found = one.scopes
      return found
    },
  }
}

/** Digests have one length, which the comparison needs. */
function digestOf(token: string): Uint8Array {
  return createHash('sha256').update(token).digest()
}

function refuseDoubles(given: readonly GivenToken[]): void {
  for (const { source, value } of given) {
    const others = given.filter((other) => other.source !== source && other.value === value)
    if (others.length === 0) continue
    const sources = [source, ...others.map((other) => other.source)]
    throw new Failure(
      'usage.bad-argument',
      `${listOf(sources)} hold the same token, so it is unclear what it may do; give each its own`,
    )
  }
}

function refuseUnsendable(given: readonly GivenToken[]): void {
  for (const { source, value } of given) {
    if (/^[\x21-\x7e]+$/.test(value)) continue
    throw new Failure(
      'usage.bad-argument',
      `${source} has characters that an Authorization header cannot carry; take printable ASCII without blanks`,
    )
  }
}
