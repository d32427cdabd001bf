/** Why Cilium lets a connection pass or drops it, and what would change that, in sentences. */
import { listOf } from '#base/text'
import type { EntryOrigin, PolicyEntry } from '#compile/policy/cilium-policy-entry'
import type { PolicyLookup } from '#compile/policy/cilium-policy-lookup'
import { isEnforced } from '#compile/policy/cilium-wanted-entries'
import type { CompiledPolicy } from '#compile/policy/policy-rule'
import { type DropNumber, dropReason } from '#trace/cilium-drop-reasons'
import type { PolicyReason } from './answer'
import type { CiliumCase, CiliumFate } from './cilium-case'
import { readPlainly } from './cilium-plain'
import { describeParty, describePoint, describePolicy, describeRule } from './describe-policy'
import type { Lane, LanePoint } from './semantics'

export type CaseView = {
  readonly lane: Lane
  readonly at: LanePoint
  readonly one: CiliumCase
  readonly fate: CiliumFate
}

export function reasonsOfFate(view: CaseView): readonly PolicyReason[] {
  return [mainReason(view), ...consequences(view), ...surprises(view)]
}

function mainReason(view: CaseView): PolicyReason {
  const { fate, at, lane } = view
  switch (fate.kind) {
    case 'allowed':
      return reasonOfPassing(view, fate)
    case 'dropped':
      return reasonOfDrop(view, fate.drop, fate.lookup)
    case 'depends-on-code':
      return {
        code: 'cilium.icmp-code',
        sentence: `code 4 of ICMP type 3 (fragmentation needed) always passes, and other codes are dropped with ${printDrop(fate.drop)}`,
      }
    case 'authenticates':
      return {
        code: 'cilium.authentication',
        sentence: `${describePoint(at)} ${sideOf(lane)} passes once both ends have authenticated each other, which the input does not tell; until then it is dropped with ${printDrop(189)}`,
        ...placeOf(fate.lookup.chosen.origins[0]),
      }
    default:
      return fate satisfies never
  }
}

function reasonOfPassing({ lane, at, one }: CaseView, fate: Extract<CiliumFate, { kind: 'allowed' }>): PolicyReason {
  if (fate.why === 'audit') {
    return {
      code: 'cilium.audit',
      sentence: 'policy would drop it, but policy-audit-mode is on: it is forwarded, with the verdict AUDIT',
    }
  }
  if (fate.why === 'fragmentation-needed') {
    return {
      code: 'cilium.fragmentation-needed',
      sentence: 'ICMP that says that fragmentation is needed passes whatever policies say',
    }
  }
  const chosen = fate.lookup?.chosen
  if (chosen?.note !== undefined && chosen.origins.length === 0) {
    const isOpen = chosen.key.identity === 0
    return {
      code: isOpen ? 'cilium.not-enforced' : 'cilium.own-host',
      sentence: isOpen ? notEnforced(one, lane) : chosen.note,
    }
  }
  const names =
    chosen === undefined
      ? ''
      : `${namesOf(chosen)} ${verbOf(chosen, 'allow')} ${describePoint(at)} ${sideOf(lane)} (${one.peer.title})`
  return { code: 'cilium.rule-allows', sentence: names, ...placeOf(chosen?.origins[0]) }
}

function notEnforced({ subject }: CiliumCase, { subject: who, direction }: Lane): string {
  const name = describeParty(who.party)
  if (subject.settings.enforcement === 'never') return 'enable-policy is never, so that nothing is enforced'
  if (subject.policies.length === 0) return `no policy selects ${name} for ${direction}, so that all is allowed`
  return `the policies that select ${name} for ${direction} do not close it (enableDefaultDeny is false), so that what none of them denies is allowed`
}

function reasonOfDrop({ lane, at, one }: CaseView, drop: DropNumber, lookup: PolicyLookup | undefined): PolicyReason {
  const code = `cilium.drop-${drop}`
  const end = `dropped with ${printDrop(drop)}`
  if (drop === 181 && lookup !== undefined) {
    const sentence = `${namesOf(lookup.chosen)} ${verbOf(lookup.chosen, 'deny')} ${describePoint(at)} ${sideOf(lane)} (${one.peer.title}): ${end}`
    return { code, sentence, ...placeOf(lookup.chosen.origins[0]) }
  }
  if (drop === 189 && lookup !== undefined) {
    const sentence = `${namesOf(lookup.chosen)} ${verbOf(lookup.chosen, 'allow')} it only to ends that have authenticated each other, and these have not: ${end}`
    return { code, sentence, ...placeOf(lookup.chosen.origins[0]) }
  }
  if (drop === 170) return { code, sentence: `pods may not send UDP to the port that nodes encapsulate with: ${end}` }
  if (drop === 157) return { code, sentence: `a fragment without ports meets no rule: ${end}` }
  const closing = one.subject.policies.filter(({ isolates }) => isolates)
  const why =
    one.subject.settings.enforcement === 'always' && closing.length === 0
      ? 'enable-policy is always'
      : `${listOf([...new Set(closing.map(describePolicy))], 5)} ${closing.length === 1 ? 'closes' : 'close'} ${describeParty(lane.subject.party)} for ${lane.direction}`
  const sentence = `${why}, and no rule allows ${describePoint(at)} ${sideOf(lane)} (${one.peer.title}): ${end}`
  return { code, sentence, ...(closing[0] !== undefined && placeOfPolicy(closing[0])) }
}

/** What follows a match beside passing. */
function consequences({ fate, one }: CaseView): readonly PolicyReason[] {
  const chosen = fate.kind === 'allowed' || fate.kind === 'authenticates' ? fate.lookup?.chosen : undefined
  const redirect = chosen?.redirect
  const learned = notLearned(one)
  if (redirect === undefined) return learned
  const proxy = redirect.listener === undefined ? `the ${redirect.parser} proxy` : `the listener ${redirect.listener}`
  const sentence = `it is redirected to ${proxy}, which judges each request by the rules of layer 7`
  return [
    { code: 'cilium.redirected', sentence, ...placeOf(chosen?.origins.find((origin) => hasRedirect(origin))) },
    ...learned,
  ]
}

function hasRedirect({ rule }: EntryOrigin): boolean {
  return (rule.consequences ?? []).some(({ kind }) => kind === 'redirect')
}

/** Names stay unknown without a rule that sends DNS answers through the proxy. */
function notLearned({ subject, peer, rules }: CiliumCase): readonly PolicyReason[] {
  if (subject.settings.dnsCache !== undefined || peer.number === 0) return []
  const isOutside = peer.labels.labels.some(({ source, key }) => source === 'reserved' && key.startsWith('world'))
  if (!isOutside) return []
  return subject.policies.flatMap((policy) => {
    const named = policy.rules.filter(({ peers }) => peers !== 'any' && peers.some(isName))
    const open = named.filter((rule) => !rules.some((found) => found.rule === rule))
    return open.map((rule) => ({
      code: 'cilium.names-not-learned',
      sentence: `no DNS rule lets Cilium see the answers for the names in ${describePolicy(policy)} ${describeRule(rule)}, so that it never learns their addresses and the destination stays the world`,
      ...placeOfPolicy(policy),
      path: rule.path,
    }))
  })
}

function isName(peer: Exclude<CompiledPolicy['rules'][number]['peers'], 'any'>[number]): boolean {
  return peer.kind === 'own' && peer.text.startsWith('addresses learned')
}

/** Where the version's lookup answers otherwise than its rules read. */
function surprises({ one, at, fate, lane }: CaseView): readonly PolicyReason[] {
  const { open, closed } = one.maps()
  if (open !== closed || fate.kind === 'depends-on-code' || fate.kind === 'authenticates') return []
  if (
    (fate.kind === 'allowed' && fate.why !== undefined) ||
    (fate.kind === 'dropped' && fate.drop !== 133 && fate.drop !== 181)
  ) {
    return []
  }
  const plain = readPlainly(one.subject, one.rules, one.peer, at)
  if (plain.isAllowed === (fate.kind === 'allowed')) return []
  const { version } = one.subject.settings
  const read = plain.isAllowed ? 'allow' : 'deny'
  const sentence = `read as they stand, the rules ${read} ${describePoint(at)} ${sideOf(lane)}; the lookup of Cilium ${version} meets another entry first`
  return [{ code: 'cilium.lookup-surprise', sentence }]
}

export function changesOf({ lane, at, one, fate }: CaseView): readonly string[] {
  const side = `${sideOf(lane)}, ${describePoint(at)}`
  const who = describeParty(lane.subject.party)
  if (fate.kind === 'authenticates') return ['authenticate both ends, or take authentication out of the rule']
  if (fate.kind === 'depends-on-code') return ['tell the code of ICMP']
  if (fate.kind === 'allowed') {
    const deny = `a policy that selects ${who} with an ${lane.direction}Deny rule ${side} would drop it`
    return isEnforced(one.subject)
      ? [deny]
      : [deny, `and so would any policy that closes ${who} for ${lane.direction} and does not allow it`]
  }
  if (fate.drop === 133) return [`an ${lane.direction} rule ${side} in a policy that selects ${who} would let it pass`]
  if (fate.drop === 181 && fate.lookup !== undefined)
    return [`take it out of ${namesOf(fate.lookup.chosen)}: no allow rule can outweigh a deny`]
  if (fate.drop === 189) return ['authenticate both ends, or take authentication out of the rule']
  return []
}

function namesOf(entry: PolicyEntry): string {
  return listOf(ruleNames(entry), 5)
}

function ruleNames({ origins }: PolicyEntry): readonly string[] {
  const names = origins.map(({ source, rule }) => {
    const { kind, namespace, name } = source.object
    return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`} ${describeRule(rule)}`
  })
  return [...new Set(names)]
}

function verbOf(entry: PolicyEntry, verb: 'allow' | 'deny'): string {
  if (ruleNames(entry).length > 1) return verb
  return verb === 'allow' ? 'allows' : 'denies'
}

export function sideOf({ direction, peer }: Lane): string {
  return `${direction === 'ingress' ? 'from' : 'to'} ${describeParty(peer.party)}`
}

export function printDrop(drop: DropNumber): string {
  return `${drop} (${dropReason(drop).name})`
}

function placeOf(origin: EntryOrigin | undefined): Pick<PolicyReason, 'object' | 'origin' | 'path'> {
  if (origin === undefined) return {}
  return { object: origin.source.object, origin: origin.source.origin, path: origin.rule.path }
}

function placeOfPolicy({ source }: CompiledPolicy): Pick<PolicyReason, 'object' | 'origin' | 'path'> {
  return { object: source.object, origin: source.origin, path: source.path }
}
