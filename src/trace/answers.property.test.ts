/** What holds for the answer to any packet through any rules: shares, and all that must change nothing. */
import { describe, expect, test } from 'vitest'
import type { Trace } from '#model/trace'
import { clusterCases, rulesetCases } from '../../test/random/traced-cases'
import { groupOutcomes } from './group-outcomes'
import { judge } from './judge'
import { type RulesetTraceInput, traceRuleset, walkEveryPath } from './trace-ruleset'

const clusters = clusterCases(10, 10)
const rulesets = rulesetCases(10, 10)
const allCases = [
  ...clusters.map((one) => ({ ...one, isCluster: true })),
  ...rulesets.map((one) => ({ ...one, isCluster: false })),
]

/** Nothing is known of the packet but where it goes. */
function withoutSource({ packet, isLocalSource, ...rest }: RulesetTraceInput): RulesetTraceInput {
  const { source, sourcePort, inInterface, ...open } = packet
  return { ...rest, packet: open }
}

function sumOf(targets: Trace['targets']): number {
  return targets.reduce((sum, { share }) => sum + share, 0)
}

/** Targets in the order of their names, and what does not depend on the lines that rules stand on. */
function plain(trace: Pick<Trace, 'verdict' | 'targets' | 'masquerade' | 'branches'>): unknown {
  const answer = ({ verdict, targets, masquerade }: Pick<Trace, 'verdict' | 'targets' | 'masquerade'>) => ({
    kind: verdict.kind,
    because: verdict.because.map(({ code, sentence }) => `${code} ${sentence}`),
    targets: targets.map(({ address, share }) => `${address} ${share}`).sort(),
    masquerade: masquerade.map(({ condition }) => condition).sort(),
  })
  return [answer(trace), ...(trace.branches ?? []).map((branch) => ({ when: branch.when, ...answer(branch) }))]
}

describe('shares', () => {
  test('add up to 1 unless a part of the connections is stopped', () => {
    for (const { seed, packets, input } of allCases) {
      for (const packet of packets) {
        const trace = traceRuleset(input(packet)).value
        for (const { verdict, targets } of [trace, ...(trace.branches ?? [])]) {
          const sum = sumOf(targets)
          expect(sum, `seed ${seed}`).toBeLessThan(1.001)
          const isWhole = verdict.kind === 'allowed' && targets.length > 0 && !isPartlyUntranslated(input(packet))
          if (isWhole) expect(sum, `seed ${seed}: ${JSON.stringify(packet)}`).toBeGreaterThan(0.999)
        }
      }
    }
  })

  test('of all paths apart add up to 1 for each set of answers', () => {
    for (const { seed, packets, input } of allCases) {
      for (const packet of packets) {
        const { main, others } = groupOutcomes(walkEveryPath(input(packet)))
        for (const { leaves } of [main, ...others]) {
          const sum = leaves.reduce((total, { share }) => total + share, 0)
          expect(sum, `seed ${seed}: ${JSON.stringify(packet)}`).toBeCloseTo(1, 6)
        }
      }
    }
  })
})

/** A rule that translates a share of the packets leaves the rest as they are: those have no target of their own. */
function isPartlyUntranslated(input: RulesetTraceInput): boolean {
  const paths = walkEveryPath(input)
  return paths.some(({ path }) => path.fields.isDnat) && paths.some(({ path }) => !path.fields.isDnat)
}

test('joining paths whose packets came out the same changes no answer', () => {
  for (const { seed, packets, input, isCluster } of allCases) {
    for (const packet of packets) {
      // Of rules about everything there are too many ways for a packet of which nothing is known.
      for (const asked of isCluster ? [input(packet), withoutSource(input(packet))] : [input(packet)]) {
        const apart = groupOutcomes(walkEveryPath(asked))
        const trace = traceRuleset(asked).value
        const { verdict, targets } = judge(apart.main.leaves, { untouched: () => undefined })
        const at = `seed ${seed}: ${JSON.stringify(packet)}`
        const isDecided = trace.verdict.because[0].code !== 'trace.undecided'
        if (isDecided) expect(trace.verdict.kind, at).toBe(verdict.kind)
        expect(targetsOf(trace.targets), at).toEqual(targetsOf(targets))
      }
    }
  }
})

function targetsOf(targets: Trace['targets']): readonly string[] {
  return targets.map(({ address, share }) => `${address} ${share}`).sort()
}

describe('the text of a save', () => {
  const variants: readonly (readonly [string, (text: string) => string])[] = [
    ['counters', (text) => text.replaceAll(/^-A /gm, '[12:720] -A ').replaceAll(/ \[0:0\]$/gm, ' [3:180]')],
    ['CRLF', (text) => text.replaceAll('\n', '\r\n')],
    ['indentation and a prompt', (text) => `root@node:~# iptables-save\n${text}`.replaceAll(/^/gm, '   ')],
    [
      'tables in another order',
      (text) =>
        text
          .split(/^(?=# Generated)/m)
          .reverse()
          .join(''),
    ],
    ['more rules in every chain, about nothing', padChains],
  ]

  test.each(variants)('%s change no answer', (_, change) => {
    for (const { seed, packets, input, text, isCluster } of allCases) {
      const changed = change(text)
      for (const packet of packets.slice(0, 6)) {
        const [before, after] = [input(packet), input(packet, changed)]
        for (const open of isCluster ? [false, true] : [false]) {
          const [one, other] = open ? [withoutSource(before), withoutSource(after)] : [before, after]
          const at = `seed ${seed}: ${JSON.stringify(packet)}`
          expect(plain(traceRuleset(other).value), at).toEqual(plain(traceRuleset(one).value))
        }
      }
    }
  })
})

/** Long chains are entered by address and port instead of rule by rule. */
function padChains(text: string): string {
  const pad = /^.*::.*$/m.test(text) ? 'fd99::' : '192.0.2.'
  return text
    .replaceAll(/^COMMIT$/gm, (commit) => commit)
    .replaceAll(/^\*[\s\S]*?^COMMIT$/gm, (table) => {
      const chains = [...table.matchAll(/^:(\S+) /gm)].map(([, chain]) => chain)
      const rules = chains.flatMap((chain) =>
        Array.from(
          { length: 40 },
          (_, at) => `-A ${chain} -d ${pad}${at + 1} -p tcp -m tcp --dport ${4000 + at} -j ACCEPT`,
        ),
      )
      return table.replace(/COMMIT$/, `${rules.join('\n')}\nCOMMIT`)
    })
}

test('a computed cluster IP leads to the endpoints of the plan, each with the same share', () => {
  for (const { seed, plan, input } of clusters) {
    for (const port of plan.ports) {
      if (!port.hasInternal) continue
      const source = plan.family === 'ipv4' ? '203.0.113.5' : '2001:db8:203::5'
      const to = { protocol: port.protocol, destination: port.clusterIP, destinationPort: port.port }
      const packet = { from: 'eth0', source, sourcePort: 10_000, ...to }
      const { verdict, targets } = traceRuleset(input(packet)).value
      const chosen = port.isInternalLocal ? port.chosen.local : port.chosen.cluster
      const share = Math.round(1e4 / chosen.length) / 1e4
      expect(verdict.kind, `seed ${seed} ${port.name}`).toBe('allowed')
      expect(targets, `seed ${seed} ${port.name}`).toEqual(chosen.map(({ text }) => ({ address: text, share })))
    }
  }
})
