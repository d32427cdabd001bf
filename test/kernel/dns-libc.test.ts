/** glibc and musl themselves resolve names against a nameserver with chosen replies, and ask as computed. */
import { expect, test } from 'vitest'
import { resolveName } from '#compile/dns/resolve-name'
import { type Libc, readResolverSettings } from '#compile/dns/resolver-settings'
import { type Case, cases, cluster, hear } from './dns-cases'
import { describeLibc, type Laboratory, openLaboratory, scriptedServer } from './dns-laboratory'

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
  const real = await laboratory.lookUp(libc, name, text)
  const computed = resolveName({ name, types: ['A', 'AAAA'] }, readResolverSettings(text, libc), hear(replies))
  const sent = computed.attempts.flatMap((attempt) =>
    Array<string>(attempt.sends).fill(`${attempt.type} ${attempt.name}`),
  )
  expect(tally(real.questions), libc).toEqual(tally(sent))
  expect([...new Set(real.questions)], libc).toEqual([...new Set(sent)])
  expect(real.outcome === 'found', libc).toBe(computed.end === 'found')
  expect(Math.abs(real.seconds - computed.seconds), libc).toBeLessThan(0.9)
  if (stated[libc] !== undefined) expect([real.outcome, real.questions.length], libc).toEqual(stated[libc])
}
