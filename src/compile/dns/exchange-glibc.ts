/** One name asked by glibc: A and AAAA together, retries, and what it makes of the replies (resolv/res_send.c, res_query.c, 2.36). */
import { type Ask, type Attempt, type Exchange, type ExchangeEnd, type Heard, isFailure, isSilent } from './attempt'
import type { ResolverSettings } from './resolver-settings'

/** After a reply that never came glibc asks one question at a time, then from a new socket, for the rest of its life. */
export type GlibcState = { pace: 'together' | 'one-by-one' | 'reopened' }

type Asked = { readonly name: string; readonly types: readonly string[]; readonly ask: Ask }

export function exchangeGlibc({ name, types, ask }: Asked, settings: ResolverSettings, state: GlibcState): Exchange {
  const heard = types.map((type) => ({ type, heard: ask(name, type) }))
  const [first, second] = heard
  const attempt = (index: number, sends: number): Attempt[] => {
    const one = heard[index]
    return one === undefined || sends === 0 ? [] : [{ ...one.heard, name, type: one.type, sends }]
  }
  const { sends, seconds, seen } = sendPair(first?.heard, second?.heard, { settings, state })
  const attempts = [...attempt(0, sends[0]), ...attempt(1, sends[1])]
  return { attempts, end: endOf(seen), seconds }
}

/** How often each question is sent, how long it takes, and the replies that count in the end. */
type Sending = { readonly sends: readonly [number, number]; readonly seconds: number; readonly seen: readonly Heard[] }

type Setting = { readonly settings: ResolverSettings; readonly state: GlibcState }

function sendPair(a: Heard | undefined, b: Heard | undefined, { settings, state }: Setting): Sending {
  const rounds = settings.attempts * settings.nameservers.length
  const patience = patienceOf(settings)
  if (a === undefined) return { sends: [0, 0], seconds: 0, seen: [] }
  // A reply that was cut makes glibc ask everything again over TCP.
  if (a.fitting !== undefined || b?.fitting !== undefined)
    return { sends: [2, 2], seconds: 0, seen: b === undefined ? [a] : [a, b] }
  if (b === undefined) {
    const fails = isFailure(a) || isSilent(a)
    return { sends: [fails ? rounds : 1, 0], seconds: isSilent(a) ? patience : 0, seen: [a] }
  }
  const isOver = (heard: Heard): boolean => isFailure(heard) || isSilent(heard)
  if (isOver(a) && isOver(b))
    return { sends: [rounds, rounds], seconds: isSilent(a) || isSilent(b) ? patience : 0, seen: [a, b] }
  if (isSilent(b)) return waitForSecond(a, settings, state)
  if (isSilent(a)) return waitForFirst(a, { settings, state })
  // The other reply is enough when one is a failure.
  return { sends: [1, 1], seconds: 0, seen: [a, b].filter((heard) => !isFailure(heard)) }
}

/** Every attempt waits once for each server; the servers after the first share their longer time. */
function patienceOf({ attempts, nameservers, timeoutSeconds }: ResolverSettings): number {
  const count = nameservers.length
  const each = nameservers.map((_, index) =>
    Math.max(1, index === 0 ? timeoutSeconds : Math.floor((timeoutSeconds << index) / count)),
  )
  return attempts * each.reduce((sum, seconds) => sum + seconds, 0)
}

/** The pair is sent again one by one, then from a new socket; the first reply stands in the end. */
function waitForSecond(a: Heard, { timeoutSeconds }: ResolverSettings, state: GlibcState): Sending {
  const times = { together: 3, 'one-by-one': 2, reopened: 1 }[state.pace]
  state.pace = 'reopened'
  return { sends: [times, times], seconds: times * timeoutSeconds, seen: [a] }
}

/** One by one the second question waits for the first reply, and so is never sent again. */
function waitForFirst(a: Heard, { settings, state }: Setting): Sending {
  const rounds = settings.attempts * settings.nameservers.length
  const isTogether = state.pace === 'together'
  const sends = isTogether ? rounds + 1 : rounds
  if (isTogether) state.pace = 'one-by-one'
  return { sends: [sends, isTogether ? 1 : 0], seconds: sends * settings.timeoutSeconds, seen: [a] }
}

/** SERVFAIL lets the walk go on, other failures and silence end it. */
function endOf(seen: readonly Heard[]): ExchangeEnd {
  if (seen.some(({ isPositive }) => isPositive)) return 'found'
  const [first] = seen
  if (first === undefined) return 'stopped'
  if (seen.every((heard) => isFailure(heard) || isSilent(heard)))
    return first.rcode === 'SERVFAIL' ? 'failed' : 'stopped'
  const told = seen.find(({ rcode }) => rcode !== 'NOERROR')
  if (told === undefined) return 'empty'
  return told.rcode === 'NXDOMAIN' ? 'missing' : 'stopped'
}
