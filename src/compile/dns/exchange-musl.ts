/** One name asked by musl: all servers at once, and any NXDOMAIN counts (src/network/res_msend.c, lookup_name.c, 1.2). */
import { type Ask, type Attempt, type Exchange, type ExchangeEnd, type Heard, isFailure, isSilent } from './attempt'
import type { ResolverSettings } from './resolver-settings'

type Asked = { readonly name: string; readonly types: readonly string[]; readonly ask: Ask }

export function exchangeMusl({ name, types, ask }: Asked, settings: ResolverSettings): Exchange {
  const heard = types.map((type) => ({ type, reply: ask(name, type) }))
  const isWaiting = heard.some(({ reply }) => isFailure(reply) || isSilent(reply))
  const refusals = heard.filter(({ reply }) => reply.rcode === 'SERVFAIL').length
  const attempts = heard.map(({ type, reply }): Attempt => {
    return { ...reply, name, type, sends: countSends(reply, { settings, refusals, types: types.length }) }
  })
  return {
    attempts,
    end: endOf(heard.map(({ reply }) => reply)),
    seconds: isWaiting ? settings.timeoutSeconds : 0,
  }
}

type Sending = { readonly settings: ResolverSettings; readonly refusals: number; readonly types: number }

/**
 * A question without a usable reply is sent once an attempt to every server. After SERVFAIL it is sent at once again, as often
 * as twice the number of questions. That budget is one for all: which question takes more of it depends on whose replies come
 * first, so each is given an even part, and only the sum is certain.
 */
function countSends(reply: Heard, { settings, refusals, types }: Sending): number {
  const { attempts, nameservers } = settings
  if (!isFailure(reply) && !isSilent(reply)) return nameservers.length
  const again = reply.rcode === 'SERVFAIL' ? (2 * types) / refusals : 0
  return attempts * (nameservers.length + again)
}

/** The replies are looked at in order, A first. */
function endOf(replies: readonly Heard[]): ExchangeEnd {
  for (const reply of replies) {
    if (isFailure(reply) || isSilent(reply)) return 'stopped'
    if (reply.rcode === 'NXDOMAIN') return 'missing'
    if (reply.rcode !== 'NOERROR') return 'stopped'
  }
  return replies.some(({ isPositive }) => isPositive) ? 'found' : 'empty'
}
