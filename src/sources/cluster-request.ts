/** One question to an API server: only ever GET, with limits of time and size, asked again where that may help. */
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Readable } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { createGunzip } from 'node:zlib'
import { Failure } from '#base/failure'
import { plainText } from '#base/text'
import { isRecord, type RawRecord } from '#manifests/text/raw-object'
import type { Authorised, Login } from './cluster-login'
import { explainNetwork, explainStatus, type Trouble } from './cluster-trouble'

export type RequestLimits = {
  /** Until a connection stands, TLS included. */
  readonly connectMilliseconds: number
  /** Without a byte. */
  readonly idleMilliseconds: number
  readonly totalMilliseconds: number
  readonly mostBytes: number
}

/** client-go gives a connection 30 s; kube-apiserver gives a list up after 60 s of its own; 500 objects of the largest kind are some 50 MB. */
export const usualLimits: RequestLimits = {
  connectMilliseconds: 30_000,
  idleMilliseconds: 60_000,
  totalMilliseconds: 300_000,
  mostBytes: 256 * 1024 * 1024,
}

export type ApiClient = {
  readonly context: string
  readonly server: URL
  /** The body of a 200; throws `ApiTrouble` for anything else. */
  readonly get: (path: string) => Promise<RawRecord>
  /** What is waited for now: answers, or why none is asked for. */
  readonly waiting: () => Waiting
}

/** `pause` is a clause; empty while nothing is waited for but answers. */
export type Waiting = { readonly questions: number; readonly pause: string }

/** Thrown inside this room alone; `trouble` says what a sentence needs. */
export class ApiTrouble extends Error {
  readonly trouble: Trouble

  constructor(trouble: Trouble) {
    super(trouble.fact)
    this.trouble = trouble
  }
}

export type ApiClientOptions = {
  readonly limits: RequestLimits
  /** Rejects when `signal` is aborted. */
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>
}

const mostTries = 4
/** Longer than that nobody waits at a prompt. */
const mostPause = 30_000

export function openApiClient(login: Login, options: ApiClientOptions): ApiClient {
  const state: State = { questions: 0, pauses: new Set() }
  return {
    context: login.context,
    server: login.server,
    get: (path) => getPatiently(login, path, { ...options, state }),
    waiting: () => ({ questions: state.questions, pause: [...state.pauses][0] ?? '' }),
  }
}

type State = { questions: number; readonly pauses: Set<string> }
type Patience = ApiClientOptions & { readonly state: State }

async function getPatiently(login: Login, path: string, options: Patience): Promise<RawRecord> {
  let isRenewed = false
  for (let attempt = 1; ; ) {
    const authorised = await login.authorise()
    try {
      return await getOnce(login, path, { ...options, authorised })
    } catch (error) {
      if (!(error instanceof ApiTrouble)) throw error
      const { trouble } = error
      if (trouble.status === 401 && !isRenewed && login.renew(authorised)) isRenewed = true
      else if (!trouble.isPassing || attempt === mostTries) throw error
      else await pauseFor(trouble, attempt++, { login, options, error })
    }
  }
}

type Pausing = { readonly login: Login; readonly options: Patience; readonly error: ApiTrouble }

async function pauseFor(trouble: Trouble, attempt: number, { login, options, error }: Pausing): Promise<void> {
  const milliseconds = trouble.pauseMilliseconds ?? 500 * 2 ** (attempt - 1)
  if (milliseconds > mostPause) throw error
  const { pauses } = options.state
  const clause = `${trouble.fact}; it is asked again after ${milliseconds / 1000} s`
  pauses.add(clause)
  try {
    await options.sleep(milliseconds, login.signal)
  } finally {
    pauses.delete(clause)
  }
}

type Asking = {
  readonly authorised: Authorised
  readonly limits: RequestLimits
  readonly state: State
}

async function getOnce(login: Login, path: string, asking: Asking): Promise<RawRecord> {
  const { authorised, state } = asking
  state.questions++
  const answer = await ask(login, path, asking).finally(() => {
    state.questions--
  })
  const value = parseJson(answer.text)
  if (answer.status !== 200) throw new ApiTrouble(explainStatus(answer, value, authorised))
  if (isRecord(value)) return value
  const isJson = answer.type.includes('json')
  const type = plainText(answer.type.slice(0, 60))
  throw new ApiTrouble({
    kind: isJson ? 'cut' : 'foreign',
    fact: isJson ? 'the answer is no whole JSON' : `the answer is ${type || 'of no type'}, not JSON`,
    isPassing: isJson,
  })
}

/** The parser's own message quotes the text. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export type Answer = {
  readonly status: number
  readonly type: string
  readonly retryAfter: string
  readonly text: string
}

/** Joined as text: a path that begins with two slashes would be another server's address. */
function urlOf({ server }: Login, path: string): URL {
  return new URL(`${server.origin}${server.pathname.replace(/\/+$/, '')}${path}`)
}

function ask(login: Login, path: string, { authorised, limits }: Asking): Promise<Answer> {
  const { server, signal } = login
  const send = server.protocol === 'https:' ? httpsRequest : httpRequest
  return new Promise((resolve, reject) => {
    const { agent, headers, isUnpacked, proxy } = authorised
    const asked = send(urlOf(login, path), {
      method: 'GET',
      agent,
      signal,
      headers: {
        ...headers,
        Accept: 'application/json',
        ...(!isUnpacked && { 'Accept-Encoding': 'gzip' }),
        'User-Agent': 'portolan',
      },
    })
    const give = (trouble: Trouble): void => {
      forget()
      asked.destroy()
      reject(new ApiTrouble(trouble))
    }
    const forget = limitTime(asked, { limits, isProxied: proxy !== '', late: (fact) => give(timedOut(fact)) })
    asked.on('error', (error) => give(explainNetwork(error, server, authorised)))
    asked.on('response', (message) => {
      readBody(message, limits.mostBytes).then(
        (text) => {
          forget()
          resolve({
            status: message.statusCode ?? 0,
            type: message.headers['content-type'] ?? '',
            retryAfter: message.headers['retry-after'] ?? '',
            text,
          })
        },
        (error) => give(error instanceof ApiTrouble ? error.trouble : cut),
      )
    })
    asked.end()
  })
}

function timedOut(fact: string): Trouble {
  return { kind: 'timeout', fact, isPassing: false }
}

type TimeLimits = {
  readonly limits: RequestLimits
  /** The agent of a proxy gives its socket when the connection stands. */
  readonly isProxied: boolean
  readonly late: (fact: string) => void
}

/** Times count from when the question has a socket: others may be in line before it. Returns what ends them. */
function limitTime(asked: ClientRequest, { limits, isProxied, late }: TimeLimits): () => void {
  const timers: NodeJS.Timeout[] = []
  const start = (milliseconds: number, what: string): NodeJS.Timeout => {
    const timer = setTimeout(() => late(`${what} in ${milliseconds / 1000} s`), milliseconds)
    timers.push(timer)
    return timer
  }
  const connect = (): NodeJS.Timeout => start(limits.connectMilliseconds, 'no connection came about')
  const proxied = isProxied ? connect() : undefined
  asked.once('socket', (socket) => {
    start(limits.totalMilliseconds, 'the answer did not end')
    clearTimeout(proxied)
    const isSecure = socket instanceof TLSSocket
    const isGreeting = isSecure && socket.getFinished() === undefined
    if (!socket.connecting && !isGreeting) return
    const connecting = connect()
    socket.once(isSecure ? 'secureConnect' : 'connect', () => clearTimeout(connecting))
  })
  asked.setTimeout(limits.idleMilliseconds, () => late(`nothing came in ${limits.idleMilliseconds / 1000} s`))
  return () => timers.forEach(clearTimeout)
}

const cut: Trouble = { kind: 'cut', fact: 'the answer broke off', isPassing: true }

async function readBody(message: IncomingMessage, mostBytes: number): Promise<string> {
  const isPacked = message.headers['content-encoding'] === 'gzip'
  const body: Readable = isPacked ? message.pipe(createGunzip()) : message
  if (isPacked) message.on('error', () => body.destroy(new Failure('cluster.unreachable', cut.fact)))
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > mostBytes) {
      const fact = `the answer is larger than ${Math.floor(mostBytes / 1024 / 1024)} MB`
      throw new ApiTrouble({ kind: 'too-large', fact, isPassing: false })
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
