/** Rules of real nodes against what their slices ask for. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Family } from '#base/ip'
import { selectSlices } from '#compile/endpointslices/select-slices'
import { parseIpset } from '#compile/iptables/parse-ipset'
import { printSave } from '#compile/iptables/print-save'
import { savedRuleset } from '#compile/iptables/render-iptables'
import { nodeIptables } from '#compile/node/node-iptables'
import { parseCluster } from '#manifests/parse-cluster'
import {
  codesOf,
  explain,
  layerIn,
  type Raw,
  rawNode,
  rawPod,
  rawService,
  rulesetFrom,
  twoNodes,
  twoPods,
} from '../../test/explain/explain-objects'

const settings = { detectLocal: { kind: 'ClusterCIDR', cidrs: ['10.244.0.0/16', 'fd00:10:244::/56'] } } as const

/** What kube-proxy writes on a node of a cluster of these objects. */
function saveOf(objects: readonly Raw[], node: string, family: Family = 'ipv4'): string {
  const cluster = parseCluster(JSON.stringify(objects)).value
  const slices = selectSlices(cluster, 'computed').value
  return printSave(savedRuleset(nodeIptables(cluster, slices, { family, node, settings }).value.sync), { date: 'x' })
}

const objects = [...twoNodes, ...twoPods, rawService()]
const save = saveOf(objects, 'node-a')

test('rules of the present slices agree with them, with and without the range of pods', () => {
  for (const given of [settings, {}]) {
    const explanation = explain(objects, { settings: given, nodeRulesets: [rulesetFrom(save, 'node-a')] })
    expect(codesOf(explanation)).toEqual([])
  }
})

test('the same in IPv6, where both families have rules', () => {
  const dual = [
    ...twoNodes,
    rawPod('web-0', '10.244.1.5', { ips: ['10.244.1.5', 'fd00:10:244:1::5'] }),
    rawPod('web-1', '10.244.2.7', { ips: ['10.244.2.7', 'fd00:10:244:2::7'], node: 'node-b' }),
    rawService({ clusterIPs: ['10.96.0.20', 'fd00:10:96::20'], ipFamilies: ['IPv4', 'IPv6'] }),
  ]
  const text = saveOf(dual, 'node-a') + saveOf(dual, 'node-a', 'ipv6').replace('iptables-save', 'ip6tables-save')
  const explanation = explain(dual, { settings, nodeRulesets: [rulesetFrom(text, 'node-a')] })
  expect(codesOf(explanation)).toEqual([])
  expect(layerIn(explanation, 'rules').table?.rows.map((row) => row[1])).toEqual([
    '10.96.0.20:80/tcp',
    '[fd00:10:96::20]:80/tcp',
  ])
})

test('a family whose rules were not given is not judged', () => {
  const dual = [
    ...twoNodes,
    ...twoPods,
    rawService({ clusterIPs: ['10.96.0.20', 'fd00::20'], ipFamilies: ['IPv4', 'IPv6'] }),
  ]
  const explanation = explain(dual, { nodeRulesets: [rulesetFrom(save, 'node-a')], families: ['ipv6'] })
  expect(layerIn(explanation, 'rules').facts).toEqual([
    'node.save holds no IPv6 rules: those of node-a are not looked at',
  ])
})

test('a last rule that is missing lets part of the connections go', () => {
  const cut = save.replace(/^-A KUBE-SVC-\S+ -m comment --comment "shop\/web:http -> 10.244.2.7:8080".*\n/m, '')
  const explanation = explain(objects, { nodeRulesets: [rulesetFrom(cut, 'node-a')] })
  expect(codesOf(explanation)).toEqual(['explain.partly-untranslated', 'explain.endpoint-missing-from-rules'])
})

test('a targetPort that moved is a rule to a port that no endpoint has', () => {
  const moved = [...twoNodes, ...twoPods, rawService({ ports: [{ name: 'http', port: 80, targetPort: 9090 }] })]
  const explanation = explain(moved, { nodeRulesets: [rulesetFrom(save, 'node-a')] })
  expect(codesOf(explanation)).toContain('explain.rule-to-no-endpoint')
  const finding = explanation.findings.find(({ code }) => code === 'explain.rule-to-no-endpoint')
  expect(finding?.evidence[0]).toMatch(/pod shop\/web-0 has the address, but its endpoint is 10\.244\.1\.5:9090$/)
})

test('without the name of the node, what policy Local chooses is not judged', () => {
  const spec = {
    type: 'NodePort',
    externalTrafficPolicy: 'Local',
    ports: [{ name: 'http', port: 80, targetPort: 'http', nodePort: 30080 }],
  }
  const local = [...twoNodes, ...twoPods, rawService(spec)]
  const text = saveOf(local, 'node-b')
  const explanation = explain(local, { nodeRulesets: [rulesetFrom(text)] })
  expect(codesOf(explanation)).toEqual([])
  expect(layerIn(explanation, 'rules').facts[0]).toMatch(/say whose they are \(--ruleset NODE=FILE\)/)
})

test('the only node of a cluster needs no name', () => {
  const one = [rawNode('a'), rawPod('web-0', '10.244.1.5'), rawService({ internalTrafficPolicy: 'Local' })]
  const explanation = explain(one, { nodeRulesets: [rulesetFrom(saveOf(one, 'node-a'))] })
  expect(codesOf(explanation)).toEqual([])
  expect(layerIn(explanation, 'rules').table?.rows[0]?.[0]).toBe('node-a')
})

test('a dump without the filter table is no proof that an empty Service hangs', () => {
  const empty = [...twoNodes, rawPod('other', '10.244.1.9', { labels: { app: 'other' } }), rawService()]
  const nat = saveOf(empty, 'node-a').replace(/^\*filter[\s\S]*?^COMMIT\n/m, '')
  const explanation = explain(empty, { nodeRulesets: [rulesetFrom(nat, 'node-a')] })
  expect(codesOf(explanation)).not.toContain('explain.no-refusal')
  expect(codesOf(explanation)).not.toContain('explain.no-rules')
})

test('rules that no kube-proxy wrote for this Service are judged by what they do', () => {
  const text = `*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -d 10.96.0.20/32 -p tcp -m tcp --dport 80 -m statistic --mode nth --every 2 --packet 0 -j DNAT --to-destination 10.244.1.5:8080
-A PREROUTING -d 10.96.0.20/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.244.2.7:8080
-A OUTPUT -d 10.96.0.20/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.244.1.5-10.244.1.5:8080
-A POSTROUTING ! -s 10.244.0.0/16 -j MASQUERADE
COMMIT
`
  const codes = codesOf(explain(objects, { nodeRulesets: [rulesetFrom(text, 'node-a')] }))
  expect(codes).not.toContain('explain.no-rules')
  expect(codes).not.toContain('explain.rule-to-no-endpoint')
})

test('masqueradeAll is no error where the settings of kube-proxy are not known, and a wrong range is one', () => {
  const all = save.replace('! -s 10.244.0.0/16 -d 10.96.0.20/32', '-d 10.96.0.20/32')
  const wrong = save.replace('! -s 10.244.0.0/16 -d 10.96.0.20/32', '! -s 10.42.0.0/16 -d 10.96.0.20/32')
  const codes = (text: string, given: object): readonly string[] =>
    codesOf(explain(objects, { settings: given, nodeRulesets: [rulesetFrom(text, 'node-a')] }))
  expect(codes(all, {})).toEqual([])
  expect(codes(all, settings)).toEqual(['explain.masquerade-differs'])
  expect(codes(wrong, {})).toEqual(['explain.masquerade-differs'])
})

test('a masquerade chain that was emptied leaves replies astray', () => {
  const spec = { type: 'NodePort', ports: [{ name: 'http', port: 80, targetPort: 'http', nodePort: 30080 }] }
  const exposed = [...twoNodes, ...twoPods, rawService(spec)]
  const text = saveOf(exposed, 'node-a').replace(/^-A KUBE-POSTROUTING.*\n/gm, '')
  const explanation = explain(exposed, { settings, nodeRulesets: [rulesetFrom(text, 'node-a')] })
  expect(codesOf(explanation)).toEqual(['explain.masquerade-differs', 'explain.hairpin-not-masqueraded'])
  expect(explanation.findings[0]?.message).toMatch(/leave the source of packets from the node, outside and a pod,/)
})

const behind = ['explain.endpoint-missing-from-rules']

test.each([
  ['kube-proxy', []],
  ['kube-proxy-legacy', []],
  ['calico', behind],
  ['flannel', behind],
  ['weave', behind],
  // Its policy lets no client but the front end in: the sets say which pods those are.
  ['kube-router', ['explain.rules-stop-packets', ...behind]],
])(
  'a %s node beside the golden scenario: no target is dead, and what its other rules stop is told',
  (name, expected) => {
    const g1 = readFileSync(new URL('../../test/golden/g1.yaml', import.meta.url), 'utf8')
    const text = readFileSync(new URL(`../../test/saves/${name}.save`, import.meta.url), 'utf8')
    const { value: cluster, findings } = parseCluster(g1)
    const ipset = new URL(`../../test/saves/${name}.ipset`, import.meta.url)
    const { sets } = parseIpset(existsSync(ipset) ? readFileSync(ipset, 'utf8') : '', name)
    const nodeRulesets = [{ ...rulesetFrom(text, 'node-a'), sets }]
    const explanation = explain([], { cluster, findings, nodeRulesets })
    const errors = explanation.findings.filter(({ severity }) => severity === 'error')
    expect(errors.map(({ code }) => code)).toEqual(expected)
  },
)
