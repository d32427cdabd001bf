/** One rule of a cluster-wide policy: its action, peers and ports. */
import type { Prefix } from '#base/prefix'
import { describeValue } from '#manifests/text/raw-object'
import type { TierAction, TierPeer, TierRule } from '#model/tier-policy'
import { type Fields, has, itemsAt, mapsAt, nameAt, pathOf, report, textsAt } from './fields'
import { policyRangeAt } from './policy-range'
import { checkKnown, refuse } from './policy-refusal'
import { readSelector } from './policy-selector'
import type { TierGrammar } from './tier-grammar'
import { readPods } from './tier-pods'
import { readTierPorts } from './tier-ports'
import type { Writable } from './writable'

export type RuleContext = { readonly side: 'ingress' | 'egress'; readonly grammar: TierGrammar }

export function readTierRule(rule: Fields, context: RuleContext): TierRule {
  const { side, grammar } = context
  const peersKey = side === 'ingress' ? 'from' : 'to'
  checkKnown(rule, ['name', 'action', peersKey, ...grammar.portFields])
  const peers = readPeers(rule, peersKey, context)
  const ports = readTierPorts(rule, grammar)
  const read: Writable<TierRule> = { path: pathOf(rule, ''), action: readAction(rule, grammar), peers }
  const name = readName(rule)
  if (name !== undefined) read.name = name
  if (ports !== undefined) read.ports = ports
  checkTogether(rule, read)
  return read
}

function readName(rule: Fields): string | undefined {
  const name = nameAt(rule, 'name')
  if (name !== undefined && name.length > 100) {
    const problem = `the name of a rule has ${name.length} characters, where it takes at most 100`
    refuse(rule, 'name', { problem, hint: 'shorten it' })
  }
  return name
}

function readAction(rule: Fields, { actions }: TierGrammar): TierAction {
  const { action } = rule.values
  const known = typeof action === 'string' ? actions.get(action) : undefined
  if (known !== undefined) return known
  const words = [...actions.keys()].join(', ')
  const problem = has(rule, 'action') ? `${describeValue(action)} is none of its actions` : 'a rule has no action'
  refuse(rule, 'action', { problem, hint: `write one of ${words}` })
  return 'deny'
}

function readPeers(rule: Fields, key: 'from' | 'to', context: RuleContext): readonly TierPeer[] {
  const count = itemsAt(rule, key).length
  const { mostPeers } = context.grammar
  if (count === 0) {
    const hint = 'for every pod write namespaces: {}'
    refuse(rule, key, { problem: `a rule has nothing in "${key}", where one peer is needed at least`, hint })
  }
  if (count > mostPeers) {
    const problem = `a rule has ${count} peers, where it takes at most ${mostPeers}`
    refuse(rule, key, { problem, hint: 'spread them over several rules' })
  }
  return mapsAt(rule, key).map((peer) => readPeer(peer, context))
}

const ingressPeers = ['namespaces', 'pods']
const egressPeers = [...ingressPeers, 'nodes', 'networks', 'domainNames']

function readPeer(peer: Fields, context: RuleContext): TierPeer {
  const known = context.side === 'ingress' ? ingressPeers : egressPeers
  const fields = Object.keys(peer.values).filter((key) => has(peer, key))
  const path = pathOf(peer, '')
  if (fields.length !== 1) {
    const problem =
      fields.length === 0 ? 'a peer names nobody' : `a peer has ${fields.join(' and ')}, where one is wanted`
    refuse(peer, '', { problem, hint: 'write one of them in each peer' })
  }
  const [field = ''] = fields
  if (!known.includes(field)) return readUnknownPeer(peer, fields)
  if (field === 'nodes') return readNodes(peer)
  if (field === 'networks') return { kind: 'networks', path, cidrs: readNetworks(peer, context.grammar) }
  if (field === 'domainNames') return { kind: 'domainNames', path, names: readNames(peer, context.grammar) }
  const { pods, problems } = readPods(peer, context.grammar)
  for (const { fields: at, key, problem, hint } of problems) tellDoubtful(at, key, problem, hint)
  return problems.length > 0 ? { kind: 'unreadable', path } : pods
}

function readUnknownPeer(peer: Fields, fields: readonly string[]): TierPeer {
  const [field = ''] = fields
  if (fields.length === 1) {
    const message = `${describeValue(field)} is a kind of peer that Portolan does not know here: a cluster that does not know it either refuses the object; otherwise the rule fails closed: it allows nothing, and a rule that denies or passes denies all`
    report(peer, field, { code: 'policy.unknown-peer', message, hint: 'write a peer of a known kind' })
  }
  return { kind: 'unknown', path: pathOf(peer, ''), fields }
}

function readNodes(peer: Fields): TierPeer {
  const read = readSelector(peer, 'nodes')
  const path = pathOf(peer, '')
  for (const { fields, key, problem, hint } of read?.problems ?? []) tellDoubtful(fields, key, problem, hint)
  if (read === undefined || read.problems.length > 0) return { kind: 'unreadable', path }
  return { kind: 'nodes', path, selector: read.selector }
}

function tellDoubtful(fields: Fields, key: string, problem: string, hint: string): void {
  const message = `the API server takes this object, but no implementation can read the selector: ${problem}; whom the rule matches is unknown`
  report(fields, key, { code: 'policy.doubtful', message, hint })
}

function readNetworks(peer: Fields, { mostRules }: TierGrammar): readonly Prefix[] {
  const items = itemsAt(peer, 'networks')
  checkCount(peer, { key: 'networks', count: items.length, most: mostNames(mostRules) })
  return items.flatMap((item, at) => policyRangeAt(peer, `networks[${at}]`, item) ?? [])
}

const namePattern = /^(\*\.)?([a-z0-9]([-a-z0-9_]*[a-z0-9])?\.)+[a-z0-9]([-a-z0-9_]*[a-z0-9])?\.?$/i

function readNames(peer: Fields, { mostRules }: TierGrammar): readonly string[] {
  const names = textsAt(peer, 'domainNames')
  checkCount(peer, { key: 'domainNames', count: names.length, most: mostNames(mostRules) })
  for (const [at, name] of names.entries()) {
    if (namePattern.test(name)) continue
    const problem = `${describeValue(name)} is no domain name, with "*." before it at most`
    refuse(peer, `domainNames[${at}]`, { problem, hint: 'write a name such as *.example.com' })
  }
  return names
}

function mostNames(mostRules: number): number {
  return Math.min(25, mostRules)
}

type Count = { readonly key: string; readonly count: number; readonly most: number }

function checkCount(peer: Fields, { key, count, most }: Count): void {
  if (count >= 1 && count <= most) return
  refuse(peer, key, { problem: `${key} has ${count} entries, where it takes 1 to ${most}`, hint: 'make several peers' })
}

/** The CEL rules of the CRDs; of domainNames in other rules than those that allow, the documentation alone speaks. */
function checkTogether(rule: Fields, { peers, ports, action }: TierRule): void {
  const outside = peers.find(({ kind }) => kind === 'networks' || kind === 'nodes' || kind === 'domainNames')
  if (outside !== undefined && ports?.some(({ kind }) => kind === 'named')) {
    const problem = `a rule has ${outside.kind} and a named port, which only pods have`
    refuse(rule, '', { problem, hint: 'write the number of the port' })
  }
  if (action === 'allow' || peers.every(({ kind }) => kind !== 'domainNames')) return
  const message = 'domainNames is for rules that allow alone; what another rule with it does is unknown'
  report(rule, 'to', { code: 'policy.doubtful', message, hint: 'deny by networks instead' })
}
