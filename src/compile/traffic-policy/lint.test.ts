/** What lint tells of traffic policies, each by the YAML that a user would write. */
import { expect, test } from 'vitest'
import { parseCluster } from '#manifests/parse-cluster'
import { lintTrafficPolicies } from './lint-traffic-policies'

const head = (name: string): string => `apiVersion: portolan.dev/v1alpha1
kind: TrafficPolicy
metadata: {namespace: tenant, name: ${name}}
`

const policy = (rules: string, { name = 'web', stateful = true } = {}): string =>
  `${head(name)}spec:\n  stateful: ${stateful}\n  rules:\n${rules
    .trim()
    .split('\n')
    .map((rule) => `    - ${rule.trim()}`)
    .join('\n')}\n`

const binding = (refs: string, name = 'web-0'): string => `---
apiVersion: portolan.dev/v1alpha1
kind: TrafficPolicyBinding
metadata: {namespace: tenant, name: ${name}}
spec: {vpcAttachmentRef: {name: web-0}, ${refs}}
`

const attachment = `---
apiVersion: portolan.dev/v1alpha1
kind: VPCAttachment
metadata: {namespace: tenant, name: web-0}
spec: {}
`

function lint(text: string) {
  const { value, findings } = parseCluster(text)
  expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
  return lintTrafficPolicies(value).map(({ code, path, message, hint }) => ({ code, path, message, hint }))
}

const codes = (text: string): readonly string[] => lint(text).map(({ code }) => code.slice('traffic-policy.'.length))

test('nothing is told of a plain policy', () => {
  expect(lint(policy('{name: a, action: Allow, match: {protocols: [TCP], destinationPorts: [{from: 80}]}}'))).toEqual(
    [],
  )
})

test('a policy without rules denies everything', () => {
  expect(codes(`${head('web')}spec: {rules: []}\n`)).toEqual(['denies-all'])
})

test('a rule after one that takes every packet is never reached', () => {
  expect(lint(policy('{name: all, action: Allow}\n{name: bad, action: Deny, match: {sources: [fd00::/8]}}'))).toEqual([
    {
      code: 'traffic-policy.shadowed-rule',
      path: 'spec.rules[1]',
      message: 'rule "bad" never decides: rule "all" before it takes every packet',
      hint: 'put it before "all", or delete one of the two',
    },
  ])
})

test('a rule with the match of another one is told as such', () => {
  const [found] = lint(
    policy(
      '{name: a, action: Allow, match: {sources: [fd00::/8]}}\n{name: b, action: Allow, match: {sources: [fd00::/8]}}',
    ),
  )
  expect(found?.message).toBe('rule "b" never decides: rule "a" before it matches the same packets')
  expect(found?.hint).toBe('delete it: nothing changes')
})

test('a rule that several others take whole between them is shadowed, and they are named', () => {
  const tcp = (name: string, ports: string): string =>
    `{name: ${name}, action: Deny, match: {protocols: [TCP], destinationPorts: [${ports}]}}`
  const rules = [tcp('low', '{from: 1, to: 1023}'), tcp('web', '{from: 8080}'), tcp('high', '{from: 1024, to: 65535}')]
  const last = '{name: t, action: Allow, match: {protocols: [tcp], destinationPorts: [{from: 22, to: 4000}]}}'
  expect(lint(policy([...rules, last].join('\n')))).toEqual([
    {
      code: 'traffic-policy.shadowed-rule',
      path: 'spec.rules[3]',
      message: 'rule "t" never decides: rules "low" and "high" before it take every packet that it matches',
      hint: 'put it before them, or delete it',
    },
  ])
})

test('a rule of which one packet is left is not shadowed', () => {
  const rules =
    '{name: a, action: Deny, match: {protocols: [TCP], destinationPorts: [{from: 1, to: 79}, {from: 81, to: 65535}]}}\n{name: b, action: Allow, match: {protocols: [TCP], destinationPorts: [{from: 1, to: 65535}]}}'
  expect(codes(policy(rules))).toEqual([])
})

test('an item within another one, and an item of a family that the rule excludes, are told', () => {
  const rules =
    '{name: a, action: Allow, match: {sources: [fd00::/8, fd00:1::/32, 10.0.0.0/8], destinations: [fd00::/64], protocols: [TCP, ICMP]}}'
  expect(
    lint(policy(rules))
      .filter(({ code }) => code !== 'traffic-policy.ipv4-behind-vip')
      .map(({ code, path }) => [code, path]),
  ).toEqual([
    ['traffic-policy.redundant-item', 'spec.rules[0].match.sources[1]'],
    ['traffic-policy.idle-item', 'spec.rules[0].match.sources[2]'],
    ['traffic-policy.idle-item', 'spec.rules[0].match.protocols[1]'],
  ])
})

test('IPv4 sources and ipFamily IPv4 on ingress are told with their equivalent', () => {
  const [sources] = lint(
    policy('{name: a, action: Allow, match: {sources: [198.51.100.0/24, 203.0.113.7/32, 10.0.0.0/8]}}'),
  )
  expect(sources).toEqual({
    code: 'traffic-policy.ipv4-behind-vip',
    path: 'spec.rules[0].match.sources',
    message:
      'rule "a": its IPv4 sources 198.51.100.0/24, 203.0.113.7/32, 10.0.0.0/8 cannot match the clients of an IPv4 VIP: they arrive as 64:ff9b::<client IPv4>',
    hint: 'the equivalent is sources: [64:ff9b::c633:6400/120, 64:ff9b::cb00:7107/128, 64:ff9b::a00:0/104] in a rule for IPv6',
  })
  const [family] = lint(policy('{name: a, action: Deny, match: {ipFamily: IPv4, paths: [VIP]}}'))
  expect(family?.message).toContain('so that the rule never matches')
  expect(family?.hint).toContain('[64:ff9b::/96]')
})

test('nothing is told of IPv4 sources on egress, on paths without VIPs, or beside their equivalent', () => {
  const ipv4 = '{name: a, action: Allow, match: {sources: [10.0.0.0/8]}}'
  expect(codes(policy(ipv4) + attachment + binding('egressPolicyRef: {name: web}'))).toEqual([])
  expect(codes(policy('{name: a, action: Allow, match: {sources: [10.0.0.0/8], paths: [Private]}}'))).toEqual([])
  expect(codes(policy(`${ipv4}\n{name: b, action: Allow, match: {sources: [64:ff9b::a00:0/104]}}`))).toEqual([])
})

test('of a policy without state, connections whose replies the other direction denies are told', () => {
  const out = policy(
    '{name: https, action: Allow, match: {destinations: [2001:db8::/64], protocols: [TCP], destinationPorts: [{from: 443}]}}',
    { name: 'egress', stateful: false },
  )
  const back = (ports: string): string =>
    `---\n${policy(`{name: replies, action: Allow, match: {protocols: [TCP], sourcePorts: [${ports}]}}`, { name: 'ingress', stateful: false })}`
  const bound = attachment + binding('ingressPolicyRef: {name: ingress}, egressPolicyRef: {name: egress}')
  expect(codes(out + back('{from: 443}') + bound)).toEqual(['missing-reply-rule'])
  const egress = lint(out + back('{from: 80}') + bound).find(
    ({ path, message }) => path === 'spec.rules[0]' && message.includes('https'),
  )
  expect(egress?.message).toBe(
    'rule "https" allows [2001:db8::1]:32768 to [2001:db8::]:443 tcp, and the ingress policy tenant/ingress denies the reply [2001:db8::]:443 to [2001:db8::1]:32768 tcp',
  )
  expect(egress?.hint).toContain('tcp from source port 443')
  // Without a policy the other direction has the built-in one; with state nothing is missing.
  expect(codes(out + attachment + binding('egressPolicyRef: {name: egress}'))).toEqual(['missing-reply-rule'])
  expect(
    codes(out.replace('stateful: false', 'stateful: true') + attachment + binding('egressPolicyRef: {name: egress}')),
  ).toEqual([])
})

test('references to what is not there, and two bindings of one attachment, are told', () => {
  expect(codes(binding('ingressPolicyRef: {name: nothing}').slice(4))).toEqual([
    'dangling-reference',
    'dangling-reference',
  ])
  const web = policy('{name: a, action: Deny}')
  expect(
    lint(
      web + attachment + binding('ingressPolicyRef: {name: web}') + binding('egressPolicyRef: {name: web}', 'a-second'),
    ),
  ).toMatchObject([
    { code: 'traffic-policy.bound-twice', message: expect.stringContaining('TrafficPolicyBinding a-second already') },
  ])
})

test('more than 256 compiled entries are an error that names the rule', () => {
  const list = (text: (index: number) => string): string =>
    Array.from({ length: 16 }, (_, index) => text(index)).join(', ')
  const match = `{sources: [${list((index) => `fd00:${index + 1}::/32`)}], destinations: [${list((index) => `fd01:${index + 1}::/32`)}]}`
  expect(codes(policy(`{name: full, action: Allow, match: ${match}}`))).toEqual([])
  const [found] = lint(
    policy(`{name: full, action: Allow, match: ${match}}\n{name: more, action: Deny, match: {sources: [fe00::/16]}}`),
  )
  expect(found).toEqual({
    code: 'traffic-policy.uncompilable',
    path: 'spec.rules[1]',
    message: 'rule "more" brings the policy to 257 compiled entries, where 256 fit',
    hint: 'shorten its lists: each combination of their items takes an entry',
  })
})
