/** What went wrong between this program and an API server, as facts that sentences are made of. */
import { Failure } from '#base/failure'
import { listOf, plainText } from '#base/text'
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
  /** The API server itself says that there is no such thing. */
  readonly isAbsent?: boolean
  /** What to do about it, where that is known: an imperative. */
  readonly remedy?: string
}

/** What is known of who asked. */
export type Asker = {
  /** HOST:PORT; empty for none. */
  readonly proxy: string
  readonly secrets: readonly string[]
  /** What of the credentials is out of date, as a clause; empty for nothing. */
  readonly outdated: string
}

type Answered = { readonly status: number; readonly retryAfter: string; readonly type: string }

/** `value` is the body, parsed. */
export function explainStatus(
  { status, retryAfter, type }: Answered,
  value: unknown,
  { secrets, outdated }: Asker,
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
    fact: `${saidOf(status, isStatus ? '' : type)}${told}${status === 401 ? because(outdated) : ''}`,
    isPassing,
    ...remedyOf(status, told),
    ...(pause !== undefined && { pauseMilliseconds: pause }),
    ...(status === 410 && { isGone: true }),
    ...(status === 404 && isStatus && { isAbsent: true }),
  }
}

function because(outdated: string): string {
  return outdated === '' ? '' : `: ${outdated}`
}

/** Who sends nothing that lets anybody in is `system:anonymous` to API servers. */
function remedyOf(status: number, told: string): Pick<Trouble, 'remedy'> {
  if (status === 401) return { remedy: 'log in again, or choose another context with --context' }
  if (status !== 403 || !told.includes('"system:anonymous"')) return {}
  return { remedy: 'the kubeconfig gives this user no credentials that count here: log in, or add them' }
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

export function explainNetwork(error: unknown, server: URL, { proxy, outdated }: Asker): Trouble {
  const trouble = explainConnection(error, server, outdated)
  if (proxy === '') return trouble
  const [, status] = /^Bad response: (\d+)$/.exec(reasonOf(error)) ?? []
  if (status !== undefined) {
    return { kind: 'unreachable', fact: `the proxy ${proxy} answers ${status}`, isPassing: false }
  }
  return { ...trouble, fact: `${trouble.fact}, by way of the proxy ${proxy}` }
}

function explainConnection(error: unknown, server: URL, outdated: string): Trouble {
  const code = codeOf(error)
  const tls = tlsFacts[code]
  if (tls !== undefined) return { kind: 'tls', fact: `${tls} (${code})`, isPassing: false, ...tlsRemedyOf(code, error) }
  // Up to Node 22 the reason stands in the message alone.
  const reason = code === 'EPROTO' ? reasonOf(error) : code
  if (/^(?:ERR_SSL|ERR_TLS|CERT_|EPROTO)/.test(code)) {
    const told = tlsFactOf(reason.replaceAll(' ', '_'))
    return { kind: 'tls', fact: `${told} (${code})${because(outdated)}`, isPassing: false }
  }
  const https = server.protocol === 'http:' ? { remedy: `${writeHttps}, if it speaks https` } : {}
  if (code.startsWith('HPE_')) {
    return { kind: 'foreign', fact: `what it answers is no HTTP (${code})`, isPassing: false, ...https }
  }
  const fact = networkFacts[code]
  if (fact !== undefined) return { kind: 'unreachable', fact, isPassing: false }
  const isReset = code === 'ECONNRESET' || code === 'EPIPE'
  if (!isReset)
    return { kind: 'unreachable', fact: `it cannot be reached (${code || 'no reason given'})`, isPassing: false }
  return {
    kind: 'cut',
    fact: `it broke the connection off (${code})${because(outdated)}`,
    isPassing: true,
    ...https,
  }
}

/** Of a time, the clock here may be what is wrong; of a name, tls-server-name may be what is missing. */
function tlsRemedyOf(code: string, error: unknown): Pick<Trouble, 'remedy'> {
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    const now = new Date().toISOString()
    return { remedy: `check the clock of this machine, which says ${now}, or have the server's certificate renewed` }
  }
  if (code !== 'ERR_TLS_CERT_ALTNAME_INVALID') return {}
  const names = namesIn(error)
  const known = names.length === 0 ? '' : `, which is of ${listOf(names, 5)}`
  return { remedy: `compare server of the kubeconfig with the certificate${known}, or set tls-server-name` }
}

/** `DNS:kubernetes, IP Address:10.96.0.1`, as Node writes alternative names. */
function namesIn(error: unknown): readonly string[] {
  const certificate = isRecord(error) && isRecord(error.cert) ? error.cert : {}
  const { subjectaltname: text } = certificate
  return typeof text === 'string' ? text.split(', ').map((one) => plainText(one.replace(/^[^:]+:/, ''))) : []
}

function tlsFactOf(reason: string): string {
  if (/wrong_version_number|packet_length_too_long|record_layer_failure/i.test(reason)) return 'it speaks no TLS'
  if (/alert_(?:bad_|unsupported_|unknown_)?(?:certificate|ca)|certificate_required/i.test(reason)) {
    return 'it refuses the client certificate, or wants one'
  }
  return 'no TLS connection can be made'
}

const writeHttps = 'write https:// before server in the kubeconfig'

type Whose = { readonly context: string; readonly server: URL }

/** Of the first question: nothing can be read. */
export function failureOf({ kind, status, fact, remedy }: Trouble, { context, server }: Whose): Failure {
  const place = `the API server of context ${context} at ${server.origin}`
  const refuse = (said: string, usual: string): Failure =>
    new Failure('cluster.refused', `${place} ${said}: ${fact}; ${remedy ?? usual}`)
  if (status === 401) return refuse('lets nobody in with these credentials', 'log in again')
  if (kind === 'tls') return refuse('is not trusted', 'check server and certificates of the kubeconfig')
  if (kind === 'foreign' || status === 404) {
    const isOpen = server.protocol === 'http:' && status === 400
    const usual = isOpen ? writeHttps : 'check server in the kubeconfig'
    return refuse('is no API server of Kubernetes', usual)
  }
  if (status === 403) {
    return refuse('does not say which kinds it has', 'bind the ClusterRole system:discovery to this user')
  }
  const usual =
    kind === 'unreachable' || kind === 'timeout'
      ? 'check that it runs, and server in the kubeconfig'
      : 'try again, or ask kubectl get --raw /apis'
  return new Failure('cluster.unreachable', `${place} cannot be asked: ${fact}; ${remedy ?? usual}`)
}
