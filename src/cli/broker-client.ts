/** Asks a broker, and turns every way that this can fail into a sentence. */
import { type Command, Option } from 'commander'
import type { Static, TSchema } from 'typebox'
import { Failure } from '#base/failure'
import { isJsonObject } from '#wire/schema-parts'
import { answerReader } from './broker-answer'
import { brokenOff, swapped, troubleOf, unreachable } from './broker-trouble'
import { readToken } from './read-token'

export type BrokerFlags = { readonly broker: string; readonly tokenFile?: string }

export type BrokerClient = {
  readonly url: string
  /** Held to the schema: a Failure where it is not a broker's answer. */
  readonly getJson: <Schema extends TSchema>(path: string, schema: Schema) => Promise<Static<Schema>>
  /** The body as it arrives. */
  readonly getStream: (path: string, accept: string) => Promise<AsyncIterable<Uint8Array>>
}

export function addBrokerOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--broker <url>', 'the broker to ask').env('PORTOLAN_BROKER').default('http://127.0.0.1:8090'),
    )
    .option('--token-file <file>', 'a file with the token to show the broker (or PORTOLAN_TOKEN)')
}

/** Long enough for a busy broker to answer, short enough to wait for. */
const patienceMs = 35_000

export function openClient(flags: BrokerFlags): BrokerClient {
  const base = parseBase(flags.broker)
  const token =
    flags.tokenFile === undefined ? process.env.PORTOLAN_TOKEN?.trim() : readToken('token-file', flags.tokenFile)
  const hasToken = token !== undefined && token !== ''
  const ask = async (path: string, accept: string): Promise<Response> => {
    const patience = new AbortController()
    const timer = setTimeout(() => patience.abort(), patienceMs)
    try {
      const response = await fetch(`${base}${path}`, {
        headers: { Accept: accept, ...(hasToken && { Authorization: `Bearer ${token}` }) },
        signal: patience.signal,
      })
      if (!response.ok) throw await refusal({ base, hasToken }, response)
      return response
    } catch (error) {
      throw error instanceof Failure ? error : unreachable(base, troubleOf(base, error, patienceMs), error)
    } finally {
      clearTimeout(timer)
    }
  }
  return {
    url: base,
    getJson: async (path, schema) => {
      const { body } = await ask(path, 'application/json')
      let text = ''
      const decoder = new TextDecoder()
      if (body !== null) for await (const chunk of readBody(base, body)) text += decoder.decode(chunk, { stream: true })
      return answerReader(`${base}${path}`, schema)(text)
    },
    getStream: async (path, accept) => {
      const { body } = await ask(path, accept)
      return body === null ? emptyStream() : readBody(base, body)
    },
  }
}

async function* emptyStream(): AsyncGenerator<Uint8Array> {}

async function* readBody(base: string, body: NonNullable<Response['body']>): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (error) {
    throw brokenOff(base, troubleOf(base, error, patienceMs), error)
  }
}

function parseBase(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url !== undefined && (url.protocol === 'http:' || url.protocol === 'https:')) {
    return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
  }
  throw new Failure('usage.bad-argument', `--broker ${text}: write a URL such as http://127.0.0.1:8090`)
}

type Asked = { readonly base: string; readonly hasToken: boolean }

async function refusal({ base, hasToken }: Asked, response: Response): Promise<Failure> {
  const text = await response.text().catch(() => '')
  // So say nginx and Go's servers.
  if (response.status === 400 && /HTTPS (port|server)/i.test(text)) {
    return new Failure('broker.refused', `what listens on ${base} speaks TLS; ask it as ${swapped(base)}`)
  }
  const detail = detailIn(text) ?? (response.statusText || 'without a reason')
  return new Failure(
    'broker.refused',
    `${base} refused (${response.status}): ${detail}${adviceFor(response, hasToken)}`,
  )
}

function detailIn(text: string): string | undefined {
  try {
    const body: unknown = JSON.parse(text)
    return isJsonObject(body) && typeof body.detail === 'string' ? body.detail : undefined
  } catch {
    return undefined
  }
}

function adviceFor({ status, headers }: Response, hasToken: boolean): string {
  if (status === 401 || status === 403) {
    return `; show ${hasToken ? 'another' : 'a'} token with PORTOLAN_TOKEN or --token-file`
  }
  if (status !== 503 && status !== 429) return ''
  const after = headers.get('Retry-After')?.trim() ?? ''
  if (after === '') return '; try again later'
  return /^\d+$/.test(after) ? `; try again in ${after} s` : `; try again after ${after}`
}
