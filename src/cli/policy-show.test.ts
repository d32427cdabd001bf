/** `policy show` on objects and a datapath that the test makes up: the sheet's cases 75 and 76, and who holds what. */
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { expect, test } from 'vitest'
import { parsePrefix } from '#base/prefix'
import { ruleNameHash } from '#compile/traffic-policy/print-snapshot'
import { fallbackReasons } from '#compile/traffic-policy/reasons'
import type { DatapathReading, DirectionReading } from '#kernel/read-datapath'
import type { ExitCode } from './command'
import { addPolicyShowWith, type OpenedNode } from './policy-show'

const objects = (rest: { readonly generation?: number; readonly state?: string; readonly rules?: string } = {}) => {
  const {
    generation = 7,
    state = 'Applied',
    rules = '[{name: http, action: Allow}, {name: rest, action: Deny}]',
  } = rest
  return `apiVersion: portolan.dev/v1alpha1
kind: VPCAttachment
metadata: {namespace: tenant, name: web-0}
spec: {vpc: {name: blue}}
status: {node: n1, hostInterface: web0}
---
apiVersion: portolan.dev/v1alpha1
kind: TrafficPolicy
metadata: {namespace: tenant, name: web, uid: u1, generation: ${generation}}
spec: {rules: ${rules}}
---
apiVersion: portolan.dev/v1alpha1
kind: TrafficPolicyBinding
metadata: {namespace: tenant, name: web-0, generation: 3}
spec: {vpcAttachmentRef: {name: web-0}, ingressPolicyRef: {name: web}, egressPolicyRef: {name: gone}}
status:
  nodes:
    - node: n1
      mode: Enforce
      heartbeatTime: "2026-10-15T12:05:00Z"
      ingress: {state: ${state}, observedGeneration: 3, lastTransitionTime: "2026-10-15T12:00:00Z"}
      egress: {state: Pending, observedGeneration: 3, lastTransitionTime: "2026-10-15T12:00:00Z", message: there is no TrafficPolicy tenant/gone}
`
}

const token = 5n
const fallbacks = (hits: Partial<Record<string, bigint>>): NonNullable<DirectionReading['fallbacks']> =>
  Object.fromEntries(fallbackReasons.map((reason) => [reason, hits[reason] ?? 0n])) as NonNullable<
    DirectionReading['fallbacks']
  >

const ingress: DirectionReading = {
  bound: {
    snapshot: {
      token,
      direction: 'ingress',
      policyUid: 'u1',
      generation: 7,
      binding: 11,
      publication: 12,
      stateful: true,
      rules: [
        { nameHash: ruleNameHash('http'), action: 'allow', counterRow: 0 },
        { nameHash: ruleNameHash('rest'), action: 'deny', counterRow: 1 },
      ],
      entries: [
        { action: 'allow', rule: 0 },
        { action: 'deny', rule: 1 },
      ],
    },
  },
  counts: [{ hits: 120n, bytes: 9600n }, undefined],
  fallbacks: fallbacks({ established: 4000n }),
}

const egress: DirectionReading = { counts: [], fallbacks: fallbacks({ policy_unavailable: 3n }) }

function nodeOf(both: { ingress: DirectionReading; egress: DirectionReading }, name = 'web0', vpc = 0): OpenedNode {
  const held = { slot: 1, token, name, index: 2, namespace: 3n, side: 'host' as const, vpc }
  const network = (text: string) =>
    parsePrefix(text)?.prefix ?? { ip: { family: 'ipv4' as const, words: [0] }, length: 0 }
  const datapath: DatapathReading = {
    interfaces: [held],
    isHere: () => true,
    direction: (_, direction) => both[direction],
    pathPrefixes: () => [
      { vpc: 7, prefix: network('10.0.0.0/8'), pathClass: 1 },
      { vpc: 7, prefix: network('0.0.0.0/0'), pathClass: 2 },
      { vpc: 8, prefix: network('192.0.2.0/24'), pathClass: 5 },
    ],
    close: () => {},
  }
  return { mode: 'enforce', datapath }
}

async function show(
  text: string,
  node: OpenedNode,
  words: readonly string[] = ['--node', 'n1'],
  name = 'tenant/web-0',
) {
  let [out, err, code] = ['', '', 0 as ExitCode]
  const io = {
    out: (said: string) => {
      out += said
    },
    err: (said: string) => {
      err += said
    },
    stdin: (async function* () {
      yield new TextEncoder().encode(text)
    })(),
    isTerminal: false,
  }
  const end = (ended: ExitCode): void => {
    code = ended
  }
  const program = new Command().exitOverride()
  addPolicyShowWith(program, { io, end, runOn: async () => 0 }, async () => node)
  await program.parseAsync(['show', name, '--from', '-', ...words], { from: 'user' })
  return { out, err, code }
}

test('75 and 76: rules by name while cluster and snapshot agree; with nothing bound, why, and what was denied', async () => {
  const { out, code } = await show(objects(), nodeOf({ ingress, egress }))
  expect(out).toBe(`attachment  VPCAttachment tenant/web-0
node        n1
interface   web0
vpc         blue
mode        enforce
chosen by   TrafficPolicyBinding tenant/web-0, generation 3

ingress
  policy    TrafficPolicy tenant/web, generation 7
  status    Applied since 2026-10-15T12:00:00Z, for generation 3, heard of 2026-10-15T12:05:00Z
  snapshot  tenant/web, generation 7, publication 12, compiled entries 2

  RULE       ACTION  HITS        BYTES
  http (#0)  allow   120         9600
  rest (#1)  deny    unreadable  unreadable

  WITHOUT A RULE  VERDICT  PACKETS
  established     allow    4000

egress
  policy    none: there is no TrafficPolicy tenant/gone; create it, or correct the reference
  status    Pending since 2026-10-15T12:00:00Z, for generation 3, heard of 2026-10-15T12:05:00Z: there is no TrafficPolicy tenant/gone
  snapshot  none: every packet is denied as policy_unavailable; the policy and the status above say why

  WITHOUT A RULE      VERDICT  PACKETS
  policy_unavailable  deny     3
`)
  expect(code).toBe(0)
})

test('the networks that give its packets a path class are those of the interface’s VPC', async () => {
  const told = async (vpc: number) => (await show(objects(), nodeOf({ ingress, egress }, 'web0', vpc))).out
  expect(await told(0)).not.toMatch(/^paths/m)
  expect(await told(7)).toMatch(/^paths {7}by networks of VPC 7: 0\.0\.0\.0\/0 Internet, 10\.0\.0\.0\/8 Private$/m)
  expect(await told(9)).toMatch(/^paths {7}by networks of VPC 9: none are set$/m)
})

test('75: after an edit that is not installed yet, rules by number', async () => {
  const { out } = await show(objects({ generation: 8 }), nodeOf({ ingress, egress }))
  expect(out).toContain('tenant/web, generation 7 of 8, publication 12')
  expect(out).toMatch(/^ {2}#0 {4}allow/m)
  expect(out).not.toContain('http')
})

test('75: an edit of a text without generations is seen by the rule that it renamed', async () => {
  const renamed = objects({ rules: '[{name: web-http, action: Allow}, {name: rest, action: Deny}]' })
  const { out } = await show(renamed, nodeOf({ ingress, egress }))
  expect(out).toMatch(/^ {2}#0 {9}allow/m)
  expect(out).toContain('rest (#1)')
})

test('as JSON: everything, with null where it cannot be known', async () => {
  const { out } = await show(objects(), nodeOf({ ingress, egress }), ['--node', 'n1', '-o', 'json'])
  const [first, second] = JSON.parse(out).directions
  expect(first.snapshot.rules[1]).toEqual({ name: 'rest', index: 1, action: 'deny', hits: null, bytes: null })
  expect(Object.keys(first.fallbacks)).toEqual(fallbackReasons)
  expect(second.snapshot).toBeNull()
  expect(second.status.state).toBe('Pending')
})

test('what is bound for an earlier lifetime of the interface, or cannot be read, is told as that', async () => {
  const snapshot = ingress.bound?.snapshot
  if (snapshot === undefined) throw new Error('there is no snapshot')
  const earlier = { ...ingress, bound: { snapshot: { ...snapshot, token: 9n } } }
  const unreadable = { ...egress, bound: {} }
  const { out } = await show(objects(), nodeOf({ ingress: earlier, egress: unreadable }))
  expect(out).toContain('bound, and made for an earlier lifetime of the interface')
  expect(out).toContain('bound, and it cannot be read')
  expect(out).not.toContain('  RULE ')
})

test('an interface that is not attached, and a datapath that cannot be read, leave the rest to be told', async () => {
  const absent = await show(objects(), nodeOf({ ingress, egress }, 'other0'))
  expect(absent.out).toContain('snapshot  interface web0 is not attached to the datapath yet')
  expect(absent.code).toBe(0)
  const none = await show(objects(), { mode: 'unknown', datapath: { why: 'it is not permitted' } })
  expect(none.out).toContain('status    Applied since')
  expect(none.out).toContain('mode        unknown\ndatapath    not read: it is not permitted\n')
  expect(none.out).toContain('  snapshot  unknown\n')
  expect([none.code, none.err]).toEqual([3, ''])
})

test('an attachment that another node holds, or none, or nobody knows, is told and ends with 1', async () => {
  const node = nodeOf({ ingress, egress })
  const ask = async (text: string) => {
    const { out, code } = await show(text, node, ['--node', 'n2'])
    return [code, out]
  }
  expect(await ask(objects())).toEqual([
    1,
    'VPCAttachment tenant/web-0 is on node n1, and this is n2; ask there, or add --node n1 if this is it\n',
  ])
  expect(await ask(objects().replace('node: n1, hostInterface', 'hostInterface'))).toEqual([
    1,
    'VPCAttachment tenant/web-0 is on no node yet; whoever places the workload writes status.node\n',
  ])
  expect(await ask(objects().replaceAll('name: web-0}', 'name: web-1}'))).toEqual([
    1,
    'there is no VPCAttachment and no EdgeAttachment tenant/web-0 in the input; it holds tenant/web-1\n',
  ])
})

test('an edge link: chosen by the service, without a status, and closed where it is not admitted', async () => {
  const sample = readFileSync('samples/traffic-policy/edge.yaml', 'utf8')
  const words = ['--node', 'node-a']
  const node = nodeOf({ ingress: egress, egress }, 'edge0')
  const open = await show(sample, node, words, 'provider/resolver-0')
  expect(open.out).toContain('attachment  EdgeAttachment provider/resolver-0\n')
  expect(open.out).toContain('chosen by   EdgeService tenant/resolver\n')
  expect(open.out).toContain('  policy    TrafficPolicy tenant/to-resolver, generation 1\n  status    -\n')
  expect(open.out).toContain('  policy    default-deny-all (built in)\n  status    -\n')
  const closed = await show(sample.replace('status: "True"', 'status: "False"'), node, words, 'provider/resolver-0')
  expect(closed.out.match(/^ {2}policy {4}none: .+$/gm)).toHaveLength(2)
})
