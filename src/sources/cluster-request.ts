/** One question to an API server: only ever GET, with limits of time and size, asked again where that may help. */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { Failure } from '#base/failure'
import { isRecord, type RawRecord } from '#manifests/text/raw-object'
import type { Authorised, Login } from './cluster-login'
import { explainNetwork, explainStatus, type Trouble } from './cluster-trouble'

export type RequestLimits = {
  /** Without a byte. */
  readonly idleMilliseconds: number
  readonly totalMilliseconds: number
  readonly mostBytes: number
}

/** kube-apiserver gives a list up after 60 s of its own; 500 objects of the largest kind are some 50 MB. */
export const usualLimits: RequestLimits = {
  idleMilliseconds: 60_000,
  totalMilliseconds: 300_000,
  mostBytes: 256 * 1024 * 1024,
}

export type ApiClient = {
  readonly context: string
  readonly server: URL
  /** The body of a 200; throws `ApiTrouble` for anything else. */
  readonly get: (path: string) => Promise<RawRecord>
}

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
  readonly sleep: (milliseconds: number) => Promise<void>
}

const mostTries = 4
/** Longer than that nobody waits at a prompt. */
const mostPause = 30_000

export function openApiClient(login: Login, options: ApiClientOptions): ApiClient {
  return { context: login.context, server: login.server, get: (path) => getPatiently(login, path, options) }
}

async function getPatiently(login: Login, path: string, options: ApiClientOptions): Promise<RawRecord> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await getOnce(login, path, options.limits)
    } catch (error) {
      if (!(error instanceof ApiTrouble) || !error.trouble.isPassing || attempt === mostTries) throw error
      const pause = error.trouble.pauseMilliseconds ?? 500 * 2 ** (attempt - 1)
      if (pause > mostPause) throw error
      await options.sleep(pause)
    }
  }
}

async function getOnce(login: Login, path: string, limits: RequestLimits): Promise<RawRecord> {
  const authorised = await login.authorise()
  const answer = await ask(login, path, { authorised, limits })
  const value = parseJson(answer.text)
  if (answer.status !== 200) throw new ApiTrouble(explainStatus(answer, value, authorised.secrets))
  if (isRecord(value)) return value
  const isJson = answer.type.includes('json')
  throw new ApiTrouble({
    kind: isJson ? 'cut' : 'foreign',
    fact: isJson ? 'the answer is no whole JSON' : `the answer is ${answer.type || 'of no type'}, not JSON`,
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

type Asking = { readonly authorised: Authorised; readonly limits: RequestLimits }

function ask({ server }: Login, path: string, { authorised, limits }: Asking): Promise<Answer> {
  const url = new URL(`${server.pathname.replace(/\/$/, '')}${path}`, server)
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest
  return new Promise((resolve, reject) => {
    const { agent, headers } = authorised
    const asked = send(url, {
      method: 'GET',
      agent,
      headers: { ...headers, Accept: 'application/json', 'Accept-Encoding': 'gzip', 'User-Agent': 'portolan' },
    })
    const give = (trouble: Trouble): void => {
      clearTimeout(total)
      asked.destroy()
      reject(new ApiTrouble(trouble))
    }
    const late = (milliseconds: number, what: string): void =>
      give({ kind: 'timeout', fact: `${what} in ${milliseconds / 1000} s`, isPassing: false })
    const total = setTimeout(() => late(limits.totalMilliseconds, 'the answer did not end'), limits.totalMilliseconds)
    asked.setTimeout(limits.idleMilliseconds, () => late(limits.idleMilliseconds, 'nothing came'))
    asked.on('error', (error) => give(explainNetwork(error, server, authorised.proxy)))
    asked.on('response', (message) => {
      readBody(message, limits.mostBytes).then(
        (text) => {
          clearTimeout(total)
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
