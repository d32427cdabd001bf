/** One connection between two parties: may it pass, says which rule, and what would change it. */
import type { Family } from '#base/ip'
import type { Direction } from '#compile/policy/policy-rule'
import type { Decision, DirectionAnswer, PolicyAnswer, PolicyReason } from './answer'
import { classOf } from './classify'
import { joinDecisions } from './connection-set'
import { describeParty } from './describe-policy'
import { explainOthers } from './explain-others'
import { judgeDirection } from './judge-direction'
import type { LaneEnds } from './lane'
import type { Party, PartyClass, PartyConnection } from './party'
import { commonFamily, familiesOf, hasEnded, nearnessOf, shareNoFamily } from './party-facts'
import type { PolicyWorld } from './policy-world'
import { reportRule } from './report-rule'
import type { LanePoint } from './semantics'

/** A protocol without ports, or a port that is not told, counts as port 0, which no rule for ports names; ICMP is asked for echo. */
export function evaluate(world: PolicyWorld, connection: PartyConnection): PolicyAnswer {
  const { source, target, protocol } = connection
  const ended = [source, target].find((party) => party.kind === 'pod' && hasEnded(party.pod))
  if (ended !== undefined) return answerEnded(ended)
  const families = [source, target].map((party) => familiesOf(world.cluster, party))
  const haveBoth = (one: Family): boolean => families.every((own) => own.length === 0 || own.includes(one))
  const isApart =
    connection.family === undefined ? shareNoFamily(world.cluster, source, target) : !haveBoth(connection.family)
  if (isApart) return answerApart(source, target)
  const icmp = protocol === 'ICMP' ? 'ipv4' : protocol === 'ICMPv6' ? 'ipv6' : undefined
  const common = icmp !== undefined && haveBoth(icmp) ? icmp : commonFamily(world.cluster, source, target)
  const family = connection.family ?? common
  const echo = protocol === 'ICMP' ? 8 : protocol === 'ICMPv6' ? 128 : 0
  const { icmpCode } = connection
  const at = { protocol, port: connection.port ?? echo, ...(icmpCode !== undefined && { icmpCode }) }
  const nearness = nearnessOf(source, target)
  const from: PartyClass = { ...classOf(world, source, family), party: source }
  const to: PartyClass = { ...classOf(world, target, family), party: target }
  const ingress = answerDirection(world, 'ingress', { ends: { subject: to, peer: from, nearness }, at })
  const egress = answerDirection(world, 'egress', { ends: { subject: from, peer: to, nearness }, at })
  const both = joinDecisions(ingress.decision, egress.decision)
  return { allowed: allowedOf(both), ingress, egress, notes: world.semantics.notes(from, to, at) }
}

function allowedOf(decision: Decision): boolean | null {
  return decision === 'unknown' ? null : decision === 'allowed'
}

function answerDirection(
  world: PolicyWorld,
  direction: Direction,
  { ends, at }: { readonly ends: LaneEnds; readonly at: LanePoint },
): DirectionAnswer {
  const { lane, rules, judgement } = judgeDirection(world, direction, { ends, at })
  const { deciding, ...judged } = judgement
  return {
    ...judged,
    rules: rules.map((rule) => reportRule(rule, deciding.has(rule.rule), direction)),
    others: explainOthers(world, lane, { at, rules }),
  }
}

function answerEnded(party: Party): PolicyAnswer {
  const phase = party.kind === 'pod' ? party.pod.phase : ''
  const sentence = `${describeParty(party)} has ended (${phase}) and holds no address: nothing reaches it, and nothing comes from it`
  return answerImpossible({ code: 'policy.pod-ended', sentence }, 'ask for a pod that runs')
}

function answerApart(source: Party, target: Party): PolicyAnswer {
  const sentence = `${describeParty(source)} and ${describeParty(target)} have no addresses of one family, so that no packet goes between them`
  return answerImpossible({ code: 'policy.no-common-family', sentence }, 'give both an address of the same family')
}

/** No packet of it can be, whatever policies say. */
function answerImpossible(reason: PolicyReason, change: string): PolicyAnswer {
  const because = [reason] as const
  const answer: DirectionAnswer = { decision: 'denied', because, rules: [], tiers: '', others: [], changes: [change] }
  return { allowed: false, ingress: answer, egress: answer, notes: [] }
}
