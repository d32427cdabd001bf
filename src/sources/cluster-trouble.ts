/** What went wrong between this program and an API server, as facts that sentences are made of. */
import { Failure } from '#base/failure'
import { plainText } from '#base/text'
import { isRecord } from '#manifests/text/raw-object'
import { codeOf, reasonOf } from './system-error'

export type Trouble = {
  readonly kind: 'unreachable' | 'tls' | 'timeout' | 'cut' | 'too-large' | 'foreign' | 'status'
  readonly status?: number
  /** A clause: `the server forbids it`. */
  readonly fact: string
  /** It may pass when the question is asked again. */
  readonly isPassing: boolean
  /** What the server asks to wait. */
  readonly pauseMilliseconds?: number
  /** Of a page: where the server lets a list go on. */
  readonly isGone?: boolean
}

type Answered = { readonly status: number; readonly retryAfter: string; readonly type: string }

/** `value` is the body, parsed. */
export function explainStatus(
  { status, retryAfter, type }: Answered,
  value: unknown,
  secrets: readonly string[],
): Trouble {
  const isStatus = isRecord(value) && value.kind === 'Status'
  const told = isStatus && typeof value.message === 'string' ? `: ${shorten(value.message, secrets)}` : ''
  if (status >= 300 && status < 400) {
    return { kind: 'foreign', status, fact: `the server answers ${status}, which leads elsewhere`, isPassing: false }
  }
  const isPassing = status === 429 || status === 500 || (status >= 502 && status <= 504)
  const pause = pauseOf(retryAfter)
  return {
    kind: isStatus || status === 401 || status === 403 || isPassing ? 'status' : 'foreign',
    status,
    fact: `${saidOf(status, isStatus ? '' : type)}${told}`,
    isPassing,
    ...(pause !== undefined && { pauseMilliseconds: pause }),
    ...(status === 410 && { isGone: true }),
  }
}

function saidOf(status: number, type: string): string {
  if (status === 401) return 'the server does not know who asks (401)'
  if (status === 403) return 'the server forbids it (403)'
  if (status === 429) return 'the server has too much to do (429)'
  return `the server answers ${status}${type === '' ? '' : ` with ${plainText(type.split(';')[0] ?? '')}`}`
}

/** Seconds, or a date, which API servers do not write. */
function pauseOf(text: string): number | undefined {
  return /^\d{1,6}$/.test(text) ? Number(text) * 1000 : undefined
}

/** The server's own words, on one line, without anything that was sent to it in confidence. */
function shorten(message: string, secrets: readonly string[]): string {
  const plain = plainText(secrets.reduce((text, secret) => text.replaceAll(secret, '…'), message))
  return plain.length > 300 ? `${plain.slice(0, 299)}…` : plain
}

const networkFacts: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there (ECONNREFUSED)',
  ENOTFOUND: 'its name is not known (ENOTFOUND)',
  EAI_AGAIN: 'its name cannot be asked for now (EAI_AGAIN)',
  EHOSTUNREACH: 'there is no way to it (EHOSTUNREACH)',
  ENETUNREACH: 'there is no way to it (ENETUNREACH)',
  ETIMEDOUT: 'it does not answer (ETIMEDOUT)',
}

const tlsFacts: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is signed by itself, and not the authority of the kubeconfig',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is not of the authority of the kubeconfig',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is not of the authority of the kubeconfig',
  UNABLE_TO_GET_ISSUER_CERT: 'its certificate is not of the authority of the kubeconfig',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is not of the authority of the kubeconfig',
  CERT_SIGNATURE_FAILURE: 'its certificate is not of the authority of the kubeconfig',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is of another name',
}

/** `proxy` is HOST:PORT of what leads there, if anything does. */
export function explainNetwork(error: unknown, server: URL, proxy: string): Trouble {
  const trouble = explainConnection(error, server)
  if (proxy === '') return trouble
  const [, status] = /^Bad response: (\d+)$/.exec(reasonOf(error)) ?? []
  if (status !== undefined) {
    return { kind: 'unreachable', fact: `the proxy ${proxy} answers ${status}`, isPassing: false }
  }
  return { ...trouble, fact: `${trouble.fact}, by way of the proxy ${proxy}` }
}

function explainConnection(error: unknown, server: URL): Trouble {
  const code = codeOf(error)
  const tls = tlsFacts[code]
  if (tls !== undefined) return { kind: 'tls', fact: `${tls} (${code})`, isPassing: false }
  // Up to Node 22 the reason stands in the message alone.
  const reason = code === 'EPROTO' ? reasonOf(error) : code
  if (/^(?:ERR_SSL|ERR_TLS|CERT_|EPROTO)/.test(code)) {
    return { kind: 'tls', fact: `${tlsFactOf(reason.replaceAll(' ', '_'))} (${code})`, isPassing: false }
  }
  const fact = networkFacts[code]
  if (fact !== undefined) return { kind: 'unreachable', fact, isPassing: false }
  const isReset = code === 'ECONNRESET' || code === 'EPIPE'
  const hint = server.protocol === 'http:' ? '; does it speak https?' : ''
  return {
    kind: isReset ? 'cut' : 'unreachable',
    fact: isReset
      ? `it broke the connection off (${code})${hint}`
      : `it cannot be reached (${code || 'no reason given'})`,
    isPassing: isReset,
  }
}

function tlsFactOf(reason: string): string {
  if (/wrong_version_number|packet_length_too_long|record_layer_failure/i.test(reason)) return 'it speaks no TLS'
  if (/alert_(?:bad_|unsupported_|unknown_)?(?:certificate|ca)|certificate_required/i.test(reason)) {
    return 'it refuses the client certificate, or wants one'
  }
  return 'no TLS connection can be made'
}

type Whose = { readonly context: string; readonly server: URL }

/** Of the first question: nothing can be read. */
export function failureOf({ kind, status, fact }: Trouble, { context, server }: Whose): Failure {
  const place = `the API server of context ${context} at ${server.origin}`
  if (status === 401) {
    return new Failure(
      'cluster.refused',
      `${place} lets nobody in with these credentials: ${fact}; log in again, or choose another context with --context`,
    )
  }
  if (kind === 'tls') {
    return new Failure(
      'cluster.refused',
      `${place} is not trusted: ${fact}; check server and certificates of the kubeconfig`,
    )
  }
  if (kind === 'foreign' || status === 404) {
    return new Failure(
      'cluster.refused',
      `${place} is no API server of Kubernetes: ${fact}; check server in the kubeconfig`,
    )
  }
  if (status === 403) {
    return new Failure(
      'cluster.refused',
      `${place} does not say which kinds it has: ${fact}; bind the ClusterRole system:discovery to this user`,
    )
  }
  const remedy =
    kind === 'unreachable'
      ? 'check that it runs, and server in the kubeconfig'
      : 'try again, or ask kubectl get --raw /apis'
  return new Failure('cluster.unreachable', `${place} cannot be asked: ${fact}; ${remedy}`)
}
