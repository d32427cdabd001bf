/** Asks a broker, and turns every way that this can fail into a sentence. */
import { type Command, Option } from 'commander'
import { Failure } from '#base/failure'
import { isJsonObject } from '#wire/schema-parts'
import { readToken } from './read-token'

export type BrokerFlags = { readonly broker: string; readonly tokenFile?: string }

export type BrokerClient = {
  readonly url: string
  readonly getJson: (path: string) => Promise<unknown>
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
  const ask = async (path: string, accept: string): Promise<Response> => {
    const patience = new AbortController()
    const timer = setTimeout(() => patience.abort(), patienceMs)
    try {
      const response = await fetch(`${base}${path}`, {
        headers: { Accept: accept, ...(token !== undefined && token !== '' && { Authorization: `Bearer ${token}` }) },
        signal: patience.signal,
      })
      if (!response.ok) throw await refusal(base, response)
      return response
    } catch (error) {
      throw error instanceof Failure ? error : unreachable(base, error)
    } finally {
      clearTimeout(timer)
    }
  }
  return {
    url: base,
    getJson: async (path) => {
      const response = await ask(path, 'application/json')
      try {
        return await response.json()
      } catch (error) {
        throw new Failure(
          'broker.refused',
          `${base} answers, but not as a broker of Portolan does; check --broker`,
          error,
        )
      }
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
    throw new Failure('broker.unreachable', `${base} broke the answer off: ${causeOf(error)}; ask again`, error)
  }
}

function parseBase(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url !== undefined && (url.protocol === 'http:' || url.protocol === 'https:')) {
    return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
  }
  throw new Failure('usage.bad-argument', `--broker ${text}: write a URL such as http://127.0.0.1:8090`)
}

function unreachable(base: string, error: unknown): Failure {
  return new Failure(
    'broker.unreachable',
    `no broker answers on ${base}: ${causeOf(error)}; start one with portolan broker, or name another with --broker`,
    error,
  )
}

/** fetch keeps the reason in the cause, and of several addresses in the cause's list. */
function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'AbortError') return `no answer within ${patienceMs / 1000} s`
  const { cause } = error
  if (cause instanceof AggregateError) return causeOf(cause.errors[0])
  return cause instanceof Error ? cause.message : error.message
}

async function refusal(base: string, response: Response): Promise<Failure> {
  const body: unknown = await response.json().catch(() => undefined)
  const detail = isJsonObject(body) && typeof body.detail === 'string' ? body.detail : response.statusText
  const advice =
    response.status === 401 || response.status === 403
      ? '; show a token with PORTOLAN_TOKEN or --token-file'
      : response.status === 503 || response.status === 429
        ? `; try again in ${response.headers.get('Retry-After') ?? 'some'} s`
        : ''
  return new Failure('broker.refused', `${base} refused (${response.status}): ${detail}${advice}`)
}
