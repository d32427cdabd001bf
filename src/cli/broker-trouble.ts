/** Why no answer of a broker came, or not the whole of it: one sentence for whatever the transport may say. */
import { Failure } from '#base/failure'

export type Trouble = { readonly why: string; readonly remedy?: string }

const others = 'check the address, or name another broker with --broker'

const troubles: Readonly<Record<string, Trouble>> = {
  ECONNREFUSED: { why: 'nothing listens there' },
  ENOTFOUND: { why: 'its name is not known', remedy: others },
  EAI_AGAIN: { why: 'its name cannot be looked up now', remedy: 'check DNS, or write an address' },
  EHOSTUNREACH: { why: 'no way leads to its address', remedy: others },
  ENETUNREACH: { why: 'no way leads to its network', remedy: others },
  ETIMEDOUT: { why: 'the connection was not taken in time', remedy: others },
  UND_ERR_CONNECT_TIMEOUT: { why: 'the connection was not taken in time', remedy: others },
  UND_ERR_HEADERS_TIMEOUT: { why: 'it did not begin to answer in time', remedy: 'ask again, or ask for less' },
  UND_ERR_BODY_TIMEOUT: { why: 'it stopped in the middle of its answer', remedy: 'ask again' },
  ECONNRESET: { why: 'the connection was reset' },
  EPIPE: { why: 'the connection was closed' },
  UND_ERR_SOCKET: { why: 'the connection was closed' },
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: { why: 'the answer is not as long as it says', remedy: 'ask again' },
  CERT_HAS_EXPIRED: { why: 'its certificate has expired', remedy: 'renew it' },
  ERR_TLS_CERT_ALTNAME_INVALID: { why: 'its certificate is for other names', remedy: 'ask it by one of those' },
}

const untrusted: Trouble = {
  why: 'its certificate is signed by nobody that is trusted here',
  remedy: 'name the authority’s file in NODE_EXTRA_CA_CERTS',
}

/** `patienceMs` is how long it was waited for an answer to begin. */
export function troubleOf(base: string, error: unknown, patienceMs: number): Trouble {
  if (!(error instanceof Error)) return { why: oneLine(String(error)) }
  if (error.name === 'AbortError') {
    return { why: `it did not begin to answer within ${patienceMs / 1000} s`, remedy: 'ask again, or ask for less' }
  }
  const { cause } = error
  // fetch keeps the reason in the cause, and of several addresses in the cause's list.
  if (cause instanceof AggregateError) return troubleOf(base, cause.errors[0], patienceMs)
  if (cause instanceof Error) return troubleOf(base, cause, patienceMs)
  // What fetch says of the ports that web pages may not ask, such as 9 and 6000.
  if (error.message === 'bad port') return { why: 'its port is kept for another protocol and is never asked' }
  return troubleOfCode(base, (error as NodeJS.ErrnoException).code ?? '') ?? { why: oneLine(error.message) }
}

function troubleOfCode(base: string, code: string): Trouble | undefined {
  const isTls = base.startsWith('https:')
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'EPROTO' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG') {
    return { why: 'what listens there does not speak TLS', remedy: `ask it as ${swapped(base)}` }
  }
  if (/SELF_SIGNED_CERT|UNABLE_TO_(VERIFY|GET_ISSUER)/.test(code)) return untrusted
  if (code.startsWith('HPE_')) {
    const remedy = isTls ? others : `check the port, or ask it as ${swapped(base)}`
    return { why: 'what listens there does not speak HTTP', remedy }
  }
  const known = Object.hasOwn(troubles, code) ? troubles[code] : undefined
  if (known === undefined) return code.startsWith('ERR_SSL_') ? { why: `TLS failed (${code})` } : undefined
  const isClosed = code === 'ECONNRESET' || code === 'UND_ERR_SOCKET' || code === 'EPIPE'
  return isClosed && !isTls ? { ...known, remedy: `ask again, or as ${swapped(base)} if it speaks TLS` } : known
}

export function swapped(base: string): string {
  return base.startsWith('https:') ? base.replace('https:', 'http:') : base.replace('http:', 'https:')
}

/** What a library says may have line breaks of its own. */
function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}

export function unreachable(base: string, { why, remedy }: Trouble, error: unknown): Failure {
  const advice = remedy ?? 'start one with portolan broker, or name another with --broker'
  return new Failure('broker.unreachable', `no broker answers on ${base}: ${why}; ${advice}`, error)
}

export function brokenOff(base: string, { why }: Trouble, error: unknown): Failure {
  return new Failure('broker.unreachable', `${base} broke the answer off: ${why}; ask again`, error)
}
