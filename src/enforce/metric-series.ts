/**
 * The series that a node's agent serves, as a value of what it can tell of itself. Sheet: traffic policy on a node,
 * "metrics". Two series a rule and eight a direction keep 100 interfaces of 64 rules both ways within 27,200.
 */
import { defaultDenyAll } from '#compile/traffic-policy/default-deny-all'
import type { DirectionView, InterfaceView, NodeMode, NodeView, RuleView } from './node-view'

export type Labels = Readonly<Record<string, string>>

/** `shared` is one object for all samples of one direction's policy, so that a printer writes it once. */
export type Sample = { readonly shared: Labels; readonly own: Labels; readonly value: number }

export type MetricFamily = {
  readonly name: string
  readonly type: 'counter' | 'gauge'
  readonly help: string
  readonly labels: readonly string[]
  readonly read: (view: NodeView) => readonly Sample[]
}

export const nodeModes: readonly NodeMode[] = ['off', 'audit', 'enforce', 'unsupported', 'unknown']

const none: Labels = {}
const prefix = 'portolan_traffic_policy_'
/** `vpc` is empty where it is not known. */
const interfaceLabels = ['attachment_kind', 'resource_namespace', 'attachment', 'vpc', 'interface', 'direction']
const ruleLabels = [...interfaceLabels, 'policy_namespace', 'policy', 'policy_uid', 'rule', 'action']

export const metricFamilies: readonly MetricFamily[] = [
  {
    name: `${prefix}rule_hits_total`,
    type: 'counter',
    help: 'Decisions that a rule made, in audit as in enforce; packets of a connection it allowed are counted as established.',
    labels: ruleLabels,
    read: (view) => readRules(view, ({ hits }) => hits),
  },
  {
    name: `${prefix}rule_bytes_total`,
    type: 'counter',
    help: 'Bytes of the packets that a rule decided.',
    labels: ruleLabels,
    read: (view) => readRules(view, ({ bytes }) => bytes),
  },
  {
    name: `${prefix}fallback_total`,
    type: 'counter',
    help: 'Packets that were decided without a rule, by reason; those of policy_unavailable met no policy at all.',
    labels: [...interfaceLabels, 'reason'],
    read: readFallbacks,
  },
  {
    name: `${prefix}mode`,
    type: 'gauge',
    help: '1 for what this node does with policy, 0 for the other modes; only enforce drops anything.',
    labels: ['mode'],
    read: ({ mode }) => nodeModes.map((one) => ({ shared: none, own: { mode: one }, value: one === mode ? 1 : 0 })),
  },
  {
    name: `${prefix}counter_read_errors`,
    type: 'gauge',
    help: 'Counters that could not be read since the agent started; their series are missing, not zero.',
    labels: [],
    read: ({ counterReadErrors }) => [{ shared: none, own: none, value: counterReadErrors }],
  },
]

/** What cannot be read is left out: a zero would say that nothing was met. */
function readRules(view: NodeView, count: (rule: RuleView) => bigint | undefined): readonly Sample[] {
  return eachDirection(view, (common, { installed }) => {
    if (installed?.rules === undefined) return []
    const { policyNamespace = '', policyUid } = installed
    const policyName = policyUid === defaultDenyAll.uid ? defaultDenyAll.name : (installed.policyName ?? '')
    const shared = { ...common, policy_namespace: policyNamespace, policy: policyName, policy_uid: policyUid }
    return installed.rules.flatMap((rule) => {
      const value = count(rule)
      if (value === undefined) return []
      return [{ shared, own: { rule: rule.name, action: rule.action }, value: Number(value) }]
    })
  })
}

function readFallbacks(view: NodeView): readonly Sample[] {
  return eachDirection(view, (shared, { fallbacks = {} }) =>
    Object.entries(fallbacks).map(([reason, hits]) => ({ shared, own: { reason }, value: Number(hits) })),
  )
}

function eachDirection(
  { interfaces }: NodeView,
  read: (common: Labels, direction: DirectionView) => readonly Sample[],
): readonly Sample[] {
  return interfaces.flatMap((one) => one.directions.flatMap((direction) => read(commonOf(one, direction), direction)))
}

function commonOf(held: InterfaceView, { direction }: DirectionView): Labels {
  return {
    attachment_kind: held.kind,
    resource_namespace: held.namespace,
    attachment: held.attachment,
    vpc: held.vpc,
    interface: held.interface,
    direction,
  }
}
