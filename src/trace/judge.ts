/** The verdict over a group of outcomes, with its reasons, targets and source translations. */
import { countOf } from '#base/text'
import type { Masquerade, Reason, Target, Verdict } from '#model/trace'
import { roundShare } from './flatten-hops'
import { type Leaf, targetOf } from './group-outcomes'
import { asksDestination, commentOf, type HopRule, textOfRule } from './hop-rule'
import type { Log } from './path'
import { printConditions } from './print-conditions'
import type { Answered } from './question'
import { indexByAnswer, tellApart } from './tell-apart'

/** What the caller knows of the destination, told where no rule took the packet. */
export type Notes = { readonly untouched: () => string | undefined }

export type Judged = { readonly verdict: Verdict; readonly targets: readonly Target[] }

/** A connection that is stopped in part is told by the worst of its ends. */
export function judge(leaves: readonly Leaf[], notes: Notes): Judged {
  const targets = sumTargets(leaves)
  const of = (kind: Leaf['outcome']['kind']): readonly Leaf[] => leaves.filter((leaf) => leaf.outcome.kind === kind)
  const unknown = of('unknown')
  const stopped = [...of('rejected'), ...of('dropped')]
  const total = leaves.reduce((sum, leaf) => sum + leaf.share, 0)
  if (unknown.length > 0) return { verdict: { kind: 'unknown', because: reasons(unknown, total) }, targets }
  if (stopped.length > 0) {
    const kind = of('dropped').length > 0 ? 'dropped' : 'rejected'
    return { verdict: { kind, because: reasons(stopped, total) }, targets }
  }
  return { verdict: { kind: 'allowed', because: allowedReasons(leaves, targets, notes) }, targets }
}

function sumTargets(leaves: readonly Leaf[]): readonly Target[] {
  const shares = new Map<string, number>()
  for (const leaf of leaves) {
    const target = targetOf(leaf)
    if (target !== undefined) shares.set(target, (shares.get(target) ?? 0) + leaf.share)
  }
  return [...shares].map(([address, share]) => ({ address, share: roundShare(share) }))
}

function reasons(leaves: readonly Leaf[], total: number): [Reason, ...Reason[]] {
  const byKey = new Map<string, { readonly leaf: Leaf; share: number }>()
  for (const leaf of leaves) {
    const end = leaf.outcome.path.end
    const place = end?.place
    const key = `${place?.hook} ${place?.table} ${place?.chain} ${place?.rule?.line} ${end?.kind === 'unknown' ? end.why : ''}`
    const entry = byKey.get(key)
    if (entry === undefined) byKey.set(key, { leaf, share: leaf.share })
    else entry.share += leaf.share
  }
  const list = [...byKey.values()].map(({ leaf, share }) => stopReason(leaf, total > 0 ? share / total : 1))
  const [first, ...rest] = list
  return first === undefined ? [{ code: 'trace.no-path', sentence: 'no packet takes this way' }] : [first, ...rest]
}

function stopReason(leaf: Leaf, share: number): Reason {
  const end = leaf.outcome.path.end
  const place = end?.place
  const where = `table ${place?.table}, chain ${place?.chain}`
  const part = share > 1 - 1e-9 ? '' : `${roundShare(share * 100)} % of connections: `
  if (end?.kind === 'unknown')
    return withRule('trace.unknown', `${part}${end.why} (${where})`, place?.rule, place?.table)
  if (place?.kind === 'note') return { code: 'trace.dropped-by-routing', sentence: `${part}${place.because}` }
  if (place?.rule === undefined)
    return { code: 'trace.dropped-by-policy', sentence: `${part}the policy of ${where} is DROP` }
  const comment = commentOf(place.rule)
  const did = leaf.outcome.kind === 'rejected' ? 'rejected' : 'dropped'
  const says = comment === undefined ? '' : `: ${comment}`
  return withRule(`trace.${did}-by-rule`, `${part}${did} in ${where}${says}`, place.rule, place.table)
}

function withRule(code: string, sentence: string, rule: HopRule | undefined, table?: string): Reason {
  const text = rule === undefined ? undefined : textOfRule(rule, table)
  return {
    code,
    sentence,
    ...(text === undefined ? {} : { rule: text }),
    ...(rule?.line === undefined ? {} : { line: rule.line }),
  }
}

function allowedReasons(leaves: readonly Leaf[], targets: readonly Target[], notes: Notes): [Reason, ...Reason[]] {
  if (targets.length > 0) {
    const rule = firstServiceRule(leaves[0]?.outcome.path.log)
    const comment = rule === undefined ? undefined : commentOf(rule)
    const by = comment === undefined ? '' : ` for "${comment}"`
    const sentence = `sent to ${countOf(targets.length, 'target')}${by}; nothing later stops it`
    const sent = withRule('trace.translated', sentence, rule)
    const rest = untranslatedShare(leaves)
    if (rest === 0) return [sent]
    const part = `${roundShare(rest * 100)} % of connections meet no rule that sends them on: they leave untranslated`
    return [sent, { code: 'trace.partly-untranslated', sentence: part }]
  }
  const isLocal = leaves.some((leaf) => leaf.outcome.delivered === 'local')
  const first: Reason = isLocal
    ? { code: 'trace.delivered', sentence: 'delivered to this node: a process must listen there' }
    : { code: 'trace.routed', sentence: 'no rule translates or stops it; it leaves by routing' }
  const sentence = notes.untouched()
  return sentence === undefined ? [first] : [first, { code: 'trace.no-service-rule', sentence }]
}

function untranslatedShare(leaves: readonly Leaf[]): number {
  const total = leaves.reduce((sum, leaf) => sum + leaf.share, 0)
  const rest = leaves.filter((leaf) => targetOf(leaf) === undefined).reduce((sum, leaf) => sum + leaf.share, 0)
  return rest > 1e-6 ? rest / total : 0
}

/** Of the nat rules the packet met, the first that asked for its destination; else the one that translated it. */
function firstServiceRule(log: Log | undefined): HopRule | undefined {
  const rules: HopRule[] = []
  for (let entry = log; entry !== undefined; entry = entry.earlier) {
    const { hop } = entry
    if (hop.rule !== undefined && (hop.hook === 'PREROUTING' || hop.hook === 'OUTPUT')) rules.unshift(hop.rule)
  }
  return rules.find(asksDestination) ?? rules.at(-1)
}

/** Each reason once: what must be true beside what is `given`, and the rule that asks for it; the usual packet's first. */
export function sourceTranslations(leaves: readonly Leaf[], given: readonly Answered[] = []): readonly Masquerade[] {
  const isGiven = (one: Answered): boolean =>
    given.some((other) => other.question.key === one.question.key && other.answer === one.answer)
  const delivered = leaves.filter((leaf) => leaf.outcome.kind === 'delivered')
  const kept = indexByAnswer(delivered.filter((leaf) => leaf.outcome.path.sourceNat === undefined))
  const entries = new Map<string, Translated>()
  for (const leaf of delivered.sort((a, b) => a.unusual.length - b.unusual.length)) {
    const nat = leaf.outcome.path.sourceNat
    if (nat === undefined) continue
    const conditions = tellApart(leaf, [...given, ...nat.conditions], kept)
    const text = printConditions(conditions.filter((one) => !isGiven(one)))
    const rule = textOfRule(nat.rule) ?? ''
    const entry = entries.get(`${text}\n${rule}`) ?? { text, rule, leaves: [] }
    entry.leaves.push(leaf)
    entries.set(`${text}\n${rule}`, entry)
  }
  const whole = Math.max(0, ...sharesByClass(delivered).values())
  const told = [...entries.values()].map((entry) => ({
    condition: conditionOf(entry, { delivered, whole }),
    rule: entry.rule,
  }))
  const always = told.find((entry) => entry.condition === 'always')
  return always === undefined ? told : [always]
}

type Translated = { readonly text: string; readonly rule: string; readonly leaves: Leaf[] }

function sharesByClass(leaves: readonly Leaf[]): ReadonlyMap<string, number> {
  const shares = new Map<string, number>()
  for (const leaf of leaves) shares.set(leaf.classKey, (shares.get(leaf.classKey) ?? 0) + leaf.share)
  return shares
}

/** A translation that only some of the connections meet says which: those to some of the targets, or a share. */
function conditionOf(
  { text, leaves }: Translated,
  all: { readonly delivered: readonly Leaf[]; readonly whole: number },
): string {
  const share = Math.max(...sharesByClass(leaves).values())
  if (share > all.whole - 1e-6) return text === '' ? 'always' : text
  const targets = new Set(leaves.map(targetOf))
  const isOther = (leaf: Leaf): boolean =>
    !leaves.includes(leaf) && targets.has(targetOf(leaf)) && leaf.outcome.path.sourceNat === undefined
  const byTarget = !targets.has(undefined) && (text !== '' || !all.delivered.some(isOther))
  const part = byTarget
    ? `it is sent to ${[...targets].join(' or ')}`
    : `for ${roundShare((share / all.whole) * 100)} % of connections`
  return text === '' ? part : `${text} and ${part}`
}
