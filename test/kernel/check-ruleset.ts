/** Puts a random ruleset on a node, sends packets, and tells the first walk that is none of Portolan's paths. */
import { parseIpset } from '#compile/iptables/parse-ipset'
import { parseSave } from '#compile/iptables/parse-save'
import { nodeAddresses } from '../random/node-layout'
import { printRuleset, type RulesetSketch } from '../random/random-ruleset'
import { answerDifference } from './compare-answers'
import { type ComparedPacket, comparePaths, type TracedNode } from './compare-paths'
import type { KernelNode } from './kernel-node'
import { answersTo, secondPackets } from './later-packets'
import { loadRules, loadSets, saveRules, saveSets } from './rules'
import type { Trouble } from './run-cases'
import type { SentPacket } from './sent-packet'
import { type Tally, tallyPackets } from './tally'
import { type PacketOutcome, tracePackets } from './trace-packets'
import type { TraceReader } from './trace-reader'

export type RulesetRig = {
  readonly node: KernelNode
  readonly reader: TraceReader
  readonly tally: Tally
  /** Takes the rules that the kernel or iptables would not have. */
  readonly refused: string[]
}

export function checkRuleset(
  rig: RulesetRig,
  sketch: RulesetSketch,
  packets: readonly SentPacket[],
): Trouble | undefined {
  const { node, refused } = rig
  const { family } = sketch
  const sets = loadSets(node, sketch.sets)
  if (!sets.ok) return { what: 'the sets are refused', shown: sets.message }
  refused.push(...loadTaken(node, sketch))
  const text = saveRules(node, { variant: 'nft', family })
  const [ruleset, ...others] = parseSave(text, 'save').rulesets
  if (ruleset === undefined || others.length > 0) return { what: 'the save is read wrongly', shown: text }
  const { sets: members } = parseIpset(saveSets(node), 'sets')
  return sendAll(rig, { ruleset, nodeIps: nodeAddresses[family], sets: members }, packets)
}

/** First packets, the answers to some of them, and what their senders say next. */
function sendAll(rig: RulesetRig, known: TracedNode, packets: readonly SentPacket[]): Trouble | undefined {
  const send = (sent: readonly SentPacket[], state?: 'ESTABLISHED') => {
    const outcomes = tracePackets({ ...rig, keepConnections: state !== undefined }, sent)
    tallyPackets(rig.tally, outcomes)
    if (state !== undefined) rig.tally.set('later packet', (rig.tally.get('later packet') ?? 0) + outcomes.length)
    const options = state === undefined ? {} : { state }
    const trouble = outcomes.map((seen) => troubleOf(seen, comparePaths(seen, known, options)))
    return { outcomes, trouble: trouble.find((one) => one !== undefined) }
  }
  const first = send(packets)
  const answers = send(answersTo(first.outcomes), 'ESTABLISHED')
  const second = send(secondPackets(first.outcomes, answers.outcomes), 'ESTABLISHED')
  return first.trouble ?? answers.trouble ?? second.trouble
}

function troubleOf(seen: PacketOutcome, compared: ComparedPacket): Trouble | undefined {
  if (compared.difference !== undefined) return { what: 'the walk is not as traced', shown: compared.difference.shown }
  const difference = answerDifference(seen, compared)
  return difference === undefined ? undefined : { what: 'the answer is not what happened', shown: difference }
}

/** Loads the text without the rules that iptables or the kernel refuses; returns those. */
function loadTaken(node: KernelNode, sketch: RulesetSketch): readonly string[] {
  const lines = printRuleset(sketch).split('\n')
  const refused: string[] = []
  for (let tries = 0; tries < 50; tries++) {
    const loaded = loadRules(node, { variant: 'nft', family: sketch.family }, lines.join('\n'))
    if (loaded.ok) return refused
    const line = Number(/(?:Error occurred at line: |line )(\d+)/.exec(loaded.message)?.[1] ?? 0)
    const rule = lines[line - 1]
    if (rule === undefined || !rule.startsWith('-A')) throw new Error(`${loaded.message}\n${lines.join('\n')}`)
    refused.push(rule)
    lines[line - 1] = ''
  }
  throw new Error(`too many rules are refused:\n${refused.join('\n')}`)
}
