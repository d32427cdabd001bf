import fc from 'fast-check'
import { dump, load } from 'js-yaml'
import { expect, test } from 'vitest'
import { emptyDirectory } from '#flows/directory'
import type { ObservedFlow } from '#flows/observed-flow'
import { parseCluster } from '#manifests/parse-cluster'
import { ciliumSemantics } from '#trace/policy/cilium-semantics'
import { kubernetesSemantics } from '#trace/policy/k8s-semantics'
import { preparePolicies } from '#trace/policy/world'
import { type Audit, type AuditVerdict, judgeFlow, startAudit } from '#verify/policy/audit'
import type { PolicyKind } from './generate-policies'
import { both, generate } from './support/observed'
import { anyFlow, flowBetween, type Member, members, podFlow, smallCluster } from './support/random-flows'

const seed = Number(process.env.PORTOLAN_SEED ?? 62)
const runs = { seed, numRuns: 40, verbose: 0 } as const

function auditOf(texts: readonly string[], kind: PolicyKind): Audit {
  const { value: cluster } = parseCluster(texts.map((text) => `---\n${text}`).join(''))
  const only = { ...cluster, pods: new Map(), nodes: new Map() }
  const semantics = kind === 'networkpolicy' ? kubernetesSemantics : ciliumSemantics(only)
  return startAudit(preparePolicies(only, { semantics }), smallCluster)
}

const textsOf = (flows: readonly ObservedFlow[], kind: PolicyKind): readonly string[] =>
  generate(flows, { kind, known: smallCluster }).policies.map(({ text }) => text)

const kindsOf = (audit: Audit, flows: readonly ObservedFlow[]): readonly AuditVerdict['kind'][] =>
  flows.map((flow) => judgeFlow(audit.judge, flow).kind)

test.each(both)(`generated policies deny none of the flows they came from (%s, seed ${seed})`, (kind) => {
  fc.assert(
    fc.property(fc.array(anyFlow, { maxLength: 25 }), (flows) => {
      const { policies, proof } = generate(flows, { kind, known: smallCluster })
      expect(proof.faults).toEqual([])
      const passed = flows.filter(({ decision }) => decision === 'ALLOW')
      const audit = auditOf(
        policies.map(({ text }) => text),
        kind,
      )
      if (policies.length > 0) expect(kindsOf(audit, passed).filter((verdict) => verdict !== 'allowed')).toEqual([])
    }),
    runs,
  )
})

test.each(both)(`and nothing is lost where nobody knows of any Service or pod (%s, seed ${seed})`, (kind) => {
  fc.assert(
    fc.property(fc.array(anyFlow, { maxLength: 25 }), (flows) => {
      const { proof } = generate(flows, { kind, known: emptyDirectory })
      expect(proof.faults).toEqual([])
    }),
    runs,
  )
})

/** Initiator, responder and port, as both ends know it. */
function connectionText(flow: ObservedFlow): string {
  const peer = flow.peer
  const [own, other] = [
    `${flow.pod.namespace}/${flow.pod.workload?.name}`,
    `${peer?.namespace}/${peer?.workload?.name}`,
  ]
  const isEgress = flow.direction === 'EGRESS'
  return `${isEgress ? own : other} > ${isEgress ? other : own} ${isEgress ? flow.peerPort : flow.ownPort}`
}

const changes = ['peer', 'port', 'direction'] as const

function changed(flow: ObservedFlow, change: (typeof changes)[number], other: Member): ObservedFlow {
  const own = members.find(({ app }) => app === flow.pod.labels?.app) ?? other
  const peer = members.find(({ app }) => app === flow.peer?.labels?.app) ?? other
  const isEgress = flow.direction === 'EGRESS'
  const port = (isEgress ? flow.peerPort : flow.ownPort) ?? 1
  if (change === 'peer') return flowBetween(own, other, { port, isEgress })
  if (change === 'port') return flowBetween(own, peer, { port: port + 7, isEgress })
  return flowBetween(own, peer, { port, isEgress: !isEgress })
}

test.each(both)(`a flow with another peer, port or direction than was seen is denied (%s, seed ${seed})`, (kind) => {
  fc.assert(
    fc.property(
      fc.array(podFlow, { minLength: 1, maxLength: 12 }),
      fc.constantFrom(...changes),
      fc.constantFrom(...members),
      (flows, change, other) => {
        const passed = flows.filter(({ decision }) => decision === 'ALLOW')
        const seen = new Set(passed.map(connectionText))
        const audit = auditOf(textsOf(flows, kind), kind)
        const altered = passed
          .map((flow) => changed(flow, change, other))
          .filter((flow) => !seen.has(connectionText(flow)) && !isSamePod(flow))
        expect(kindsOf(audit, altered).filter((verdict) => verdict !== 'denied')).toEqual([])
      },
    ),
    runs,
  )
})

test.each(both)(`the order of the rows is of no matter (%s, seed ${seed})`, (kind) => {
  const shuffled = fc
    .array(anyFlow, { maxLength: 20 })
    .chain((flows) =>
      fc.tuple(fc.constant(flows), fc.shuffledSubarray(flows, { minLength: flows.length, maxLength: flows.length })),
    )
  fc.assert(
    fc.property(shuffled, ([flows, others]) => {
      expect(textsOf(others, kind)).toEqual(textsOf(flows, kind))
    }),
    runs,
  )
})

/** Every connection of two workloads at a port, seen at either end, of their last replicas. */
const everyFlow = members.flatMap((own) =>
  members.flatMap((other) =>
    [80, 443, 3306, 8080].flatMap((port) =>
      [true, false].map((isEgress) =>
        flowBetween(own, other, { port, isEgress, replica: own.replicas - 1, otherReplica: other.replicas - 1 }),
      ),
    ),
  ),
)

test.each(both)(`generating from all that the policies allow gives the same policies (%s, seed ${seed})`, (kind) => {
  let added = 0
  fc.assert(
    fc.property(fc.array(podFlow, { maxLength: 12 }), (flows) => {
      const texts = textsOf(flows, kind)
      const audit = auditOf(texts, kind)
      // What was recorded at another workload would be a policy more.
      const recorded = new Set(flows.map(({ pod }) => `${pod.namespace}/${pod.workload?.name}`))
      const more = everyFlow
        .filter(({ pod }) => recorded.has(`${pod.namespace}/${pod.workload?.name}`))
        .filter((flow) => !isSamePod(flow) && judgeFlow(audit.judge, flow).kind === 'allowed')
      added += more.length
      expect(textsOf([...flows, ...more], kind).map(specOf)).toEqual(texts.map(specOf))
    }),
    runs,
  )
  expect(added).toBeGreaterThan(runs.numRuns)
})

function specOf(text: string): unknown {
  return (load(text) as { readonly spec: unknown }).spec
}

test.each(both)(`what was dropped changes no rule (%s, seed ${seed})`, (kind) => {
  fc.assert(
    fc.property(fc.array(anyFlow, { maxLength: 20 }), (flows) => {
      const passed = flows.filter(({ decision }) => decision === 'ALLOW')
      const documents = textsOf(flows, kind).map((text) => JSON.stringify(load(text)))
      // A pod of which only dropped rows are there makes its workload known, and so gives it a policy of its own.
      expect(textsOf(passed, kind).filter((text) => !documents.includes(JSON.stringify(load(text))))).toEqual([])
    }),
    runs,
  )
})

type Rule = {
  readonly from?: readonly Peer[]
  readonly to?: readonly Peer[]
  readonly ports: readonly { readonly port: number | string; readonly protocol: string }[]
}
type Peer = {
  readonly ipBlock?: { readonly cidr: string }
  readonly podSelector?: { readonly matchLabels: Readonly<Record<string, string>> }
  readonly namespaceSelector?: { readonly matchLabels: Readonly<Record<string, string>> }
}
type Policy = {
  readonly metadata: { readonly namespace: string }
  readonly spec: {
    readonly podSelector: { readonly matchLabels: Readonly<Record<string, string>> }
    readonly ingress?: readonly Rule[]
    readonly egress?: readonly Rule[]
  }
}

/** Written apart from the engine: whether one rule lets a connection between two pods through. */
function lets(rule: Rule, place: string, { peer, port }: { readonly peer: Member; readonly port: number }): boolean {
  const isPort = rule.ports.some((one) => one.protocol === 'TCP' && one.port === port)
  return (
    isPort &&
    (rule.from ?? rule.to ?? []).some(({ podSelector, namespaceSelector }) => {
      const namespace = namespaceSelector?.matchLabels['kubernetes.io/metadata.name'] ?? place
      return podSelector?.matchLabels.app === peer.app && namespace === peer.namespace
    })
  )
}

test(`without one rule the audit tells exactly the flows behind it (seed ${seed})`, () => {
  fc.assert(
    fc.property(fc.array(podFlow, { minLength: 1, maxLength: 15 }), fc.nat(), (flows, pick) => {
      const passed = flows.filter(({ decision }) => decision === 'ALLOW')
      const policies = textsOf(flows, 'networkpolicy').map((text) => load(text) as Policy)
      const rules = policies.flatMap((policy) =>
        (['ingress', 'egress'] as const).flatMap((direction) =>
          (policy.spec[direction] ?? []).map((rule) => ({ policy, direction, rule })),
        ),
      )
      const chosen = rules[pick % Math.max(1, rules.length)]
      if (chosen === undefined) return
      const { policy, direction, rule } = chosen
      const without = {
        ...policy,
        spec: { ...policy.spec, [direction]: policy.spec[direction]?.filter((one) => one !== rule) },
      }
      const texts = policies.map((one) => dump(one === policy ? without : one))
      const audit = auditOf(texts, 'networkpolicy')
      const denied = passed.filter((flow) => judgeFlow(audit.judge, flow).kind === 'denied')
      expect(denied).toEqual(passed.filter((flow) => isBehind(flow, chosen)))
    }),
    runs,
  )
})

type Chosen = { readonly policy: Policy; readonly direction: 'ingress' | 'egress'; readonly rule: Rule }

function isBehind(flow: ObservedFlow, { policy, direction, rule }: Chosen): boolean {
  const find = (app: string | undefined): Member => members.find((one) => one.app === app) ?? (members[0] as Member)
  const [own, other] = [find(flow.pod.labels?.app), find(flow.peer?.labels?.app)]
  const isEgress = flow.direction === 'EGRESS'
  const [from, to] = isEgress ? [own, other] : [other, own]
  const [subject, peer] = direction === 'egress' ? [from, to] : [to, from]
  const port = (isEgress ? flow.peerPort : flow.ownPort) ?? 0
  const place = policy.metadata.namespace
  if (policy.spec.podSelector.matchLabels.app !== subject.app || place !== subject.namespace) return false
  if (isSamePod(flow)) return false
  return lets(rule, place, { peer, port })
}

/** What a pod sends to itself meets no policy. */
function isSamePod({ pod, peerAddress }: ObservedFlow): boolean {
  return pod.address === peerAddress
}
