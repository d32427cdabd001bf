/** The sheet's cases about conditions (54 to 63, 65, 68) by their numbers, on a clock that the test sets. */
import { describe, expect, test } from 'vitest'
import { parseCluster } from '#manifests/parse-cluster'
import type { Cluster } from '#model/cluster'
import type { Condition } from './condition'
import { staleAfterMs } from './condition-installed'
import { type JudgedObject, surveyConditions } from './condition-survey'

const start = Date.parse('2026-10-15T12:05:00Z')
const head = 'apiVersion: portolan.dev/v1alpha1\n'

type Said = {
  readonly node?: string
  readonly ingress?: string
  readonly egress?: string
  readonly generation?: number
  readonly mode?: string | null
  readonly heartbeat?: string | null
}

function entry({ node = 'n1', ingress = 'Applied', egress = 'Applied', generation = 3, ...rest }: Said): string {
  const { mode = 'Enforce', heartbeat = '2026-10-15T12:05:00Z' } = rest
  const side = (state: string): string =>
    `{state: ${state}, observedGeneration: ${generation}, lastTransitionTime: "2026-10-15T12:00:00Z"${state === 'Failed' ? ', message: no rows are left' : ''}}`
  return `{node: ${node}, ingress: ${side(ingress)}, egress: ${side(egress)}${mode === null ? '' : `, mode: "${mode}"`}${heartbeat === null ? '' : `, heartbeatTime: "${heartbeat}"`}}`
}

type World = { readonly node?: string | null; readonly generation?: number; readonly entries: readonly string[] }

function world({ node = 'n1', generation = 3, entries }: World): Cluster {
  const status = node === null ? '' : `status: {node: ${node}, hostInterface: web0}\n`
  const text = [
    `${head}kind: VPCAttachment\nmetadata: {namespace: tenant, name: web-0}\n${status}`,
    `${head}kind: TrafficPolicy\nmetadata: {namespace: tenant, name: web}\nspec: {rules: [{name: http, action: Allow}]}\n`,
    `${head}kind: TrafficPolicyBinding\nmetadata: {namespace: tenant, name: web-0, generation: ${generation}}\nspec: {vpcAttachmentRef: {name: web-0}, ingressPolicyRef: {name: web}}\nstatus: {nodes: [${entries.join(', ')}]}\n`,
  ]
  const { value, findings } = parseCluster(text.join('---\n'))
  expect(findings.filter(({ code }) => code.startsWith('traffic-policy.'))).toEqual([])
  return value
}

function bindingOf(cluster: Cluster, now: number): JudgedObject {
  const found = surveyConditions(cluster, now).objects.find(({ kind }) => kind === 'TrafficPolicyBinding')
  if (found === undefined) throw new Error('there is no binding')
  return found
}

const shortOf = (conditions: readonly Condition[], ...types: readonly string[]): readonly string[] =>
  types.map((type) => {
    const one = conditions.find((condition) => condition.type === type)
    return one === undefined ? 'none' : `${one.status}/${one.reason}`
  })

/** What a controller would leave behind: the objects with the conditions it writes. */
function written(cluster: Cluster, now: number): Cluster {
  const { objects } = surveyConditions(cluster, now)
  const conditionsOf = (kind: string, name: string) =>
    objects.find((one) => one.kind === kind && one.meta.name === name)?.conditions ?? []
  const bindings = [...cluster.trafficPolicyBindings].map(
    ([key, one]) =>
      [
        key,
        { ...one, status: { ...one.status, conditions: conditionsOf('TrafficPolicyBinding', one.meta.name) } },
      ] as const,
  )
  const policies = [...cluster.trafficPolicies].map(
    ([key, one]) => [key, { ...one, status: { conditions: conditionsOf('TrafficPolicy', one.meta.name) } }] as const,
  )
  return { ...cluster, trafficPolicyBindings: new Map(bindings), trafficPolicies: new Map(policies) }
}

type Case = readonly [title: string, world: World, installed: string, enforcing: string, message: RegExp]

const cases: readonly Case[] = [
  ['54: both Applied, fresh, Enforce', { entries: [entry({})] }, 'True/Installed', 'True/Enforcing', /n1/],
  ['55: mode Audit', { entries: [entry({ mode: 'Audit' })] }, 'True/Installed', 'False/Audit', /n1/],
  ['33: mode Off', { entries: [entry({ mode: 'Off' })] }, 'True/Installed', 'False/Off', /n1/],
  ['34: mode Unsupported', { entries: [entry({ mode: 'Unsupported' })] }, 'True/Installed', 'False/Unsupported', /n1/],
  ['56: no mode', { entries: [entry({ mode: null })] }, 'True/Installed', 'False/Unknown', /n1/],
  ['57: an older generation', { generation: 4, entries: [entry({})] }, 'False/Pending', 'False/Pending', /n1.*3.*4/],
  ['58: no node', { node: null, entries: [entry({})] }, 'False/NoNodes', 'False/NoNodes', /tenant\/web-0/],
  ['59: only another node', { entries: [entry({ node: 'n2' })] }, 'False/Pending', 'False/Pending', /n1/],
  [
    '60: egress Failed',
    { entries: [entry({ egress: 'Failed' })] },
    'False/Failed',
    'False/Failed',
    /n1: egress failed: no rows are left/,
  ],
  ['one direction Pending', { entries: [entry({ ingress: 'Pending' })] }, 'False/Pending', 'False/Pending', /n1/],
  [
    'Stale comes before Failed',
    { entries: [entry({ egress: 'Failed', heartbeat: '2026-10-15T11:40:00Z' })] },
    'False/Stale',
    'False/Stale',
    /n1/,
  ],
  [
    'Failed comes before Pending',
    { entries: [entry({ egress: 'Failed', ingress: 'Pending' })] },
    'False/Failed',
    'False/Failed',
    /n1: egress failed/,
  ],
  ['no heartbeat at all', { entries: [entry({ heartbeat: null })] }, 'False/Stale', 'False/Stale', /n1/],
  [
    '63: the interface moved to n2, and n1 left its entry behind',
    { node: 'n2', entries: [entry({ node: 'n1' }), entry({ node: 'n2', mode: 'Audit' })] },
    'True/Installed',
    'False/Audit',
    /n2/,
  ],
  [
    '64: two nodes have written',
    { entries: [entry({ node: 'n2', ingress: 'Failed' }), entry({ node: 'n1' })] },
    'True/Installed',
    'True/Enforcing',
    /n1 drops/,
  ],
]

describe.each(cases)('case %s', (_, given, installed, enforcing, message) => {
  const cluster = world(given)

  test('gives Installed and Enforcing', () => {
    const { conditions } = bindingOf(cluster, start)
    expect(shortOf(conditions, 'Installed', 'Enforcing')).toEqual([installed, enforcing])
    expect(conditions.map((one) => one.observedGeneration)).toEqual(conditions.map(() => given.generation ?? 3))
    expect(conditions.find(({ type }) => type === 'Enforcing')?.message).toMatch(message)
  })

  test('62: a controller that starts anew says the same, and has nothing to write', () => {
    const left = written(cluster, start)
    expect(surveyConditions(left, start).objects.map(({ isChanged }) => isChanged)).toEqual([false, false])
    const { nextAt = start + 1 } = surveyConditions(left, start)
    const later = surveyConditions(left, nextAt - 1)
    expect(later.objects.filter(({ isChanged }) => isChanged)).toEqual([])
    expect(bindingOf(left, nextAt - 1).conditions).toEqual(bindingOf(cluster, start).conditions)
  })
})

test('61: a heartbeat of 24 min 59 s is fresh, one of 25 min 0 s is stale, and the moment is known before', () => {
  const cluster = written(world({ entries: [entry({})] }), start)
  const last = start + staleAfterMs - 1000
  expect(shortOf(bindingOf(cluster, last).conditions, 'Installed', 'Enforcing')).toEqual([
    'True/Installed',
    'True/Enforcing',
  ])
  expect(bindingOf(cluster, last).isChanged).toBe(false)
  const { nextAt = 0 } = surveyConditions(cluster, last)
  expect(new Date(nextAt).toISOString()).toBe('2026-10-15T12:30:00.000Z')
  const stale = bindingOf(cluster, nextAt)
  expect(shortOf(stale.conditions, 'Installed', 'Enforcing')).toEqual(['False/Stale', 'False/Stale'])
  expect(stale.isChanged).toBe(true)
  expect(surveyConditions(cluster, nextAt).nextAt).toBeUndefined()
})

test('lastTransitionTime moves with the status of its own type, and not with the reason or a heartbeat', () => {
  const at = (cluster: Cluster, now: number) =>
    Object.fromEntries(bindingOf(cluster, now).conditions.map((one) => [one.type, one.lastTransitionTime]))
  const first = written(world({ entries: [entry({ mode: 'Audit' })] }), start)
  expect(at(first, start + 60_000)).toMatchObject({
    Installed: '2026-10-15T12:05:00Z',
    Enforcing: '2026-10-15T12:05:00Z',
  })
  const nodesOf = (said: Said) => world({ entries: [entry(said)] }).trafficPolicyBindings.get('tenant/web-0')?.status
  const withStatus = (cluster: Cluster, said: Said): Cluster => {
    const before = cluster.trafficPolicyBindings.get('tenant/web-0')
    if (before === undefined) throw new Error('there is no binding')
    const status = { ...before.status, ...nodesOf(said) }
    return { ...cluster, trafficPolicyBindings: new Map([['tenant/web-0', { ...before, status }]]) }
  }
  const off = withStatus(first, { mode: 'Off' })
  expect(bindingOf(off, start + 60_000).isChanged).toBe(true)
  expect(at(off, start + 60_000).Enforcing).toBe('2026-10-15T12:05:00Z')
  const enforcing = withStatus(first, { mode: 'Enforce' })
  expect(at(enforcing, start + 60_000)).toMatchObject({
    Installed: '2026-10-15T12:05:00Z',
    Enforcing: '2026-10-15T12:06:00Z',
  })
})

test('of two bindings of one attachment the older counts, and the other has a Conflict', () => {
  const binding = (name: string, created: string): string =>
    `${head}kind: TrafficPolicyBinding\nmetadata: {namespace: tenant, name: ${name}, creationTimestamp: "${created}"}\nspec: {vpcAttachmentRef: {name: web-0}}\nstatus: {nodes: [${entry({ generation: 1 })}]}\n`
  const { value } = parseCluster(
    [
      `${head}kind: VPCAttachment\nmetadata: {namespace: tenant, name: web-0}\nstatus: {node: n1}\n`,
      binding('a', '2026-10-02T00:00:00Z'),
      binding('b', '2026-10-01T00:00:00Z'),
    ].join('---\n'),
  )
  const found = surveyConditions(value, start).objects.map(({ meta, conditions }) => [
    meta.name,
    ...shortOf(conditions, 'Installed', 'Enforcing', 'Conflict'),
  ])
  expect(found).toEqual([
    ['a', 'False/Conflict', 'False/Conflict', 'True/AttachmentBound'],
    ['b', 'True/Installed', 'True/Enforcing', 'none'],
  ])
})

test('58: a status that cannot be read is no missing node: the condition says what is wrong with it, and where', () => {
  const attachment = `${head}kind: VPCAttachment\nmetadata: {namespace: tenant, name: web-0}\n`
  const binding = `${head}kind: TrafficPolicyBinding\nmetadata: {namespace: tenant, name: web-0}\nspec: {vpcAttachmentRef: {name: web-0}}\n`
  const judge = (status: string, ofBinding = '') => {
    const { value } = parseCluster([attachment + status, binding + ofBinding].join('---\n'))
    const installed = bindingOf(value, start).conditions.find(({ type }) => type === 'Installed')
    return `${installed?.reason}: ${installed?.message}`
  }
  expect(judge('status: {node: 7}\n')).toMatch(
    /^NoNodes: the status of VPCAttachment tenant\/web-0 cannot be read.*: status\.node: .*; /,
  )
  expect(judge('status: nothing\n')).toMatch(/^NoNodes: the status of VPCAttachment .* cannot be read.*: status: /)
  expect(judge('status: {}\n')).toMatch(/^NoNodes: VPCAttachment tenant\/web-0 is on no node; whoever/)
  expect(judge('status: {node: n1}\n', 'status: {nodes: 3}\n')).toMatch(
    /^Pending: what n1 says of the binding cannot be read: status\.nodes: .*; /,
  )
})
