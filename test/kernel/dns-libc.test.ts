/** glibc and musl themselves resolve names against a nameserver with chosen replies, and ask as computed. */
import { expect, test } from 'vitest'
import { resolveName } from '#compile/dns/resolve-name'
import { type Libc, readResolverSettings } from '#compile/dns/resolver-settings'
import { type Case, cases, cluster, hear } from './dns-cases'
import { describeLibc, type Laboratory, type LookedUp, openLaboratory, scriptedServer } from './dns-laboratory'

function tally(questions: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const question of questions) counts[question] = (counts[question] ?? 0) + 1
  return counts
}

describeLibc('the C libraries ask as computed', () => {
  test.each(cases.map((one) => [one.id, one] as const))('%s', async (_, one) => {
    const laboratory = await openLaboratory(scriptedServer(one.replies))
    try {
      await compare('glibc', one, laboratory)
      await compare('musl', one, laboratory)
    } finally {
      laboratory.close()
    }
  })
})

async function compare(
  libc: Libc,
  { name, replies, conf = cluster, ...stated }: Case,
  laboratory: Laboratory,
): Promise<void> {
  const text = `nameserver 127.0.0.1\n${conf}`
  const real = await lookUpUnhindered(() => laboratory.lookUp(libc, name, text))
  const { attempts, end, seconds } = resolveName(
    { name, types: ['A', 'AAAA'] },
    readResolverSettings(text, libc),
    hear(replies),
  )
  const sent = attempts.flatMap((one) => Array<string>(one.sends).fill(`${one.type} ${one.name}`))
  const shared = libc === 'musl' ? attempts.filter(({ rcode }) => rcode === 'SERVFAIL') : []
  expect(tallyTogether(real.questions, shared), libc).toEqual(tallyTogether(sent, shared))
  expect([...new Set(real.questions)], libc).toEqual([...new Set(sent)])
  expect(real.outcome === 'found', libc).toBe(end === 'found')
  // A library never gives up early; a machine that is busy makes it late. What is computed are whole seconds.
  expect(real.seconds, libc).toBeGreaterThan(seconds - 0.1)
  expect(real.seconds, libc).toBeLessThan(seconds + 0.9 + real.stall)
  if (stated[libc] !== undefined) expect([real.outcome, real.questions.length], libc).toEqual(stated[libc])
}

/** A tenth of a second is well below the half second after which a question of these cases is sent again. */
const longestStall = 0.1

/** A library that had to wait for a processor sends again as if the reply were late: that look-up shows nothing, and is repeated. */
async function lookUpUnhindered(lookUp: () => Promise<LookedUp>): Promise<LookedUp> {
  for (let repeats = 5; repeats > 0; repeats -= 1) {
    const one = await lookUp()
    if (one.stall < longestStall) return one
  }
  return lookUp()
}

/**
 * How often each question was sent; those that share their repeats count as one. musl's repeats after SERVFAIL come out of one
 * budget an attempt (servfail_retry in src/network/res_msend.c), which A and AAAA use up in the order in which replies happen to
 * come: their sum is certain, the share of each is a race. That each was sent is checked beside this.
 */
function tallyTogether(
  questions: readonly string[],
  shared: readonly { readonly type: string; readonly name: string }[],
): Readonly<Record<string, number>> {
  const names = new Map(shared.map(({ type, name }) => [`${type} ${name}`, `SERVFAIL ${name}`]))
  return tally(questions.map((question) => names.get(question) ?? question))
}
