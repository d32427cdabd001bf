/**
 * The promise about what is not known: whatever the source turns out to be, its answer is among those told without it, under
 * a condition that the source fulfils.
 */
import { expect, test } from 'vitest'
import { type Ip, isSameIp, printIp } from '#base/ip'
import { containsIp, parsePrefixOrIp } from '#base/prefix'
import { parseSave } from '#compile/iptables/parse-save'
import { printSave } from '#compile/iptables/print-save'
import { savedRuleset } from '#compile/iptables/render-iptables'
import type { Ruleset } from '#compile/iptables/rule'
import type { Trace } from '#model/trace'
import { rulesOfSketch } from '../../test/random/cluster-objects'
import { nodeAddresses } from '../../test/random/node-layout'
import { randomOf, seedOfRun } from '../../test/random/random'
import { type ClusterSketch, randomCluster } from '../../test/random/random-cluster'
import { randomPacket, traceInputOf } from '../../test/random/random-packets'
import { coversPattern } from './path'
import { type RulesetTraceInput, traceRuleset } from './trace-ruleset'

const caseCount = 20

type Answer = Pick<Trace, 'verdict' | 'targets' | 'masquerade'>

/** What a condition says of this packet, or of some of its kind. A client is in no list yet. */
function isTrue(condition: string, { packet, isLocalSource }: RulesetTraceInput): boolean {
  if (condition === 'always' || condition.startsWith('it is sent to ')) return true
  // Chance decides this one, for a packet whose source is known as well.
  if (/^(it is sent to |for [\d.]+ % of connections)/.test(condition)) return true
  if (condition === 'a process on the node sends it') return isLocalSource === true
  const list = /^the client is (not )?in list /.exec(condition)
  if (list) return list[1] !== undefined
  const source = /^the source is (?:(not|inside|outside) )?(\S+)$/.exec(condition)
  const prefix = parsePrefixOrIp(source?.[2] ?? '')
  if (source && prefix && packet.source) {
    const isInside = containsIp(prefix, packet.source)
    return source[1] === 'not' || source[1] === 'outside' ? !isInside : isInside
  }
  const link = /^it (comes|does not come) in through (\S+)$/.exec(condition)
  if (link) return coversPattern(link[2] ?? '', packet.inInterface ?? '') === (link[1] === 'comes')
  throw new Error(`the test does not know this condition: ${condition}`)
}

/** The number of things asked for by the way in which the conditions hold that asks for most; 0 when they do not hold. */
function weightOf(when: string, input: RulesetTraceInput): number {
  // Of many ways only some are listed.
  const ways = when
    .split('; or ')
    .filter((way) => !/^\d+ more$/.test(way))
    .map((way) => way.split(' and '))
  return Math.max(0, ...ways.map((way) => (way.every((one) => isTrue(one, input)) ? way.length : 0)))
}

/** The answers told for a packet: those whose conditions say most of it, or else the main one. */
function answersFor(trace: Trace, input: RulesetTraceInput): readonly Answer[] {
  const weighed = (trace.branches ?? []).map((branch) => ({ branch, weight: weightOf(branch.when, input) }))
  const most = Math.max(0, ...weighed.map(({ weight }) => weight))
  return most === 0 ? [trace] : weighed.filter(({ weight }) => weight === most).map(({ branch }) => branch)
}

function isSameAnswer(told: Answer, given: Answer, input: RulesetTraceInput): boolean {
  const masquerades = told.masquerade.some(({ condition }) => weightOf(condition, input) > 0)
  return (
    told.verdict.kind === given.verdict.kind &&
    JSON.stringify(told.targets) === JSON.stringify(given.targets) &&
    masquerades === given.masquerade.length > 0
  )
}

function shown({ verdict, targets, masquerade }: Answer): string {
  return JSON.stringify({ kind: verdict.kind, targets, masquerade: masquerade.map(({ condition }) => condition) })
}

function isLocal(nodeIps: readonly string[], ip: Ip): boolean {
  return nodeIps.includes(printIp(ip)) || printIp(ip) === '127.0.0.1' || printIp(ip) === '::1'
}

function rulesetOf(sketch: ClusterSketch): Ruleset {
  const [ruleset] = parseSave(printSave(savedRuleset(rulesOfSketch(sketch).sync), { date: 'now' }), 'save').rulesets
  if (ruleset === undefined) throw new Error('no ruleset')
  return ruleset
}

test('the answer for a source is told without it', () => {
  const seed = seedOfRun()
  for (let at = 0; at < caseCount; at++) {
    const sketch = randomCluster(seed + at, at % 2 === 0 ? 'ipv4' : 'ipv6')
    const known = { rulesets: [rulesetOf(sketch)], nodeIps: nodeAddresses[sketch.family] }
    const { plan } = rulesOfSketch(sketch)
    const random = randomOf(seed + at)
    for (let number = 0; number < 25; number++) {
      const given = traceInputOf(randomPacket(random, plan, number), known)
      const { source, sourcePort, inInterface, ...open } = given.packet
      const { isLocalSource, ...rest } = given
      // A process that talks to its own node does so from the address it talks to, unless it goes out of its way.
      const isOwn = isLocalSource === true && isLocal(known.nodeIps, open.destination)
      if (isOwn && source !== undefined && !isSameIp(source, open.destination)) continue
      const answer = traceRuleset(given).value
      const trace = traceRuleset({ ...rest, packet: open }).value
      for (const told of answersFor(trace, given)) {
        if (isSameAnswer(told, answer, given)) continue
        const all = [trace, ...(trace.branches ?? [])].map(
          (one) => `${'when' in one ? one.when : 'main'}: ${shown(one)}`,
        )
        const ends = `${source && printIp(source)}:${sourcePort} ${inInterface ?? 'a process'}`
        const to = `${printIp(open.destination)} ${open.protocol} ${open.destinationPort}`
        const head = `PORTOLAN_SEED=${seed + at}: ${ends} → ${to} ${isLocalSource}`
        expect.fail([head, `given: ${shown(answer)}`, ...all].join('\n'))
      }
    }
  }
})
