/** A whole ruleset explained: every destination with its shares, and what is odd about it. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseIpset } from '#compile/iptables/parse-ipset'
import { parseSave } from '#compile/iptables/parse-save'
import { parseNftList } from '#compile/nftables/parse-list'
import { makersOf, recogniseNode } from './recognise-node'
import { surveyServices } from './survey-services'

const saves = (name: string): string => readFileSync(new URL(`../../test/saves/${name}`, import.meta.url), 'utf8')

test('the golden scenario: each destination once, with its verdict and targets', () => {
  const rows = surveyServices({
    rulesets: parseSave(saves('kube-proxy.save'), 'x').rulesets,
    nodeIps: ['192.168.50.11'],
  })
  expect(
    rows.map((row) => [row.name, row.destination, row.protocol, row.trace.verdict.kind, row.trace.targets.length]),
  ).toEqual([
    ['default/kubernetes:https', '10.96.0.1:443', 'tcp', 'allowed', 1],
    ['kube-system/kube-dns:dns', '10.96.0.10:53', 'udp', 'allowed', 2],
    ['kube-system/kube-dns:dns-tcp', '10.96.0.10:53', 'tcp', 'allowed', 2],
    ['shop/api:http', '10.96.20.1:80', 'tcp', 'allowed', 2],
    ['shop/api:http', '198.51.100.20:80', 'tcp', 'allowed', 1],
    ['shop/api:http', '203.0.113.77:80', 'tcp', 'allowed', 1],
    ['shop/api:http', 'this node:31080', 'tcp', 'allowed', 1],
    ['shop/cache:redis', '10.96.20.4:6379', 'tcp', 'dropped', 0],
    ['shop/pay:https', '10.96.20.2:443', 'tcp', 'allowed', 2],
    ['shop/pay:https', '198.51.100.21:443', 'tcp', 'dropped', 0],
    ['shop/pay:https', 'this node:31443', 'tcp', 'allowed', 2],
    ['shop/void', '10.96.20.3:80', 'tcp', 'rejected', 0],
    ['shop/void', 'this node:31090', 'tcp', 'rejected', 0],
    ['shop/web', '10.96.10.1:80', 'tcp', 'allowed', 3],
  ])
  expect(rows.flatMap((row) => row.anomalies)).toEqual([])
})

test('a cascade whose numbers are wrong is told with what is left over', () => {
  const text = saves('kube-proxy.save').replace('--probability 0.33333333349', '--probability 0.50000000000')
  const [row] = surveyServices({ rulesets: parseSave(text, 'x').rulesets }).filter((one) => one.name === 'shop/web')
  expect(row?.trace.targets.map((target) => target.share)).toEqual([0.5, 0.25, 0.25])
  expect(row?.anomalies).toEqual(['uneven shares: 0.25 to 0.5'])
})

test('a last rule that went missing leaves connections untranslated', () => {
  const text = saves('kube-proxy.save').replace(
    /^-A KUBE-SVC-E3\S+ -m comment --comment "shop\/web -> 10.244.2.3:8080".*\n/m,
    '',
  )
  const [row] = surveyServices({ rulesets: parseSave(text, 'x').rulesets }).filter((one) => one.name === 'shop/web')
  expect(row?.anomalies[0]).toBe('33.3333 % of connections meet no rule that sends them on: they leave untranslated')
})

test.each([
  ['kube-proxy.save', ['kube-proxy']],
  ['calico.save', ['kube-proxy', 'Calico']],
  ['flannel.save', ['kube-proxy', 'Flannel']],
  ['cilium.save', ['Cilium']],
  ['istio-sidecar.save', ['Istio']],
])('the makers of %s are known', (name, makers) => {
  const found = makersOf(parseSave(saves(name), name).rulesets)
  for (const maker of makers) expect(found).toContain(maker)
})

test.each([
  ['P6', 'kube-proxy-ipvs.save', 'ruleset.ipvs'],
  ['P7', 'cilium.save', 'ruleset.cilium'],
])('%s: %s is told what it is', (_, name, code) => {
  const findings = recogniseNode(parseSave(saves(name), name))
  expect(findings.map((finding) => finding.code)).toContain(code)
})

test('P5: an empty dump with the warning about the other variant says where the rules are', () => {
  const text =
    '# Warning: iptables-legacy tables present, use iptables-legacy-save to see them\n*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n'
  const [finding] = recogniseNode(parseSave(text, 'x')).filter((one) => one.code === 'ruleset.other-variant')
  expect(finding?.message).toBe('the rules are in the other iptables variant')
  expect(finding?.hint).toContain('iptables-legacy-save')
})

test('a Service chain that no rule jumps to is told as stale', () => {
  const text = saves('kube-proxy.save').replace(/^-A KUBE-SERVICES -d 10.96.10.1\/32.*\n/m, '')
  expect(recogniseNode(parseSave(text, 'x')).map((finding) => finding.code)).toEqual(['ruleset.stale-chains'])
})

test('every save of every maker is surveyed without an error, sets and all', () => {
  for (const name of [
    'calico',
    'kube-router',
    'weave',
    'rare-matches',
    'docker',
    'docker-28',
    'firewalld',
    'kind',
    'libvirt',
    'ufw',
    'nat-only',
    'kube-proxy-ipv6',
    'kube-proxy-legacy',
    'kube-proxy-1.18',
    'kube-proxy-large',
  ]) {
    const { rulesets, findings } = parseSave(saves(`${name}.save`), name)
    expect(findings, name).toEqual([])
    const hasSets = ['calico', 'kube-router', 'weave', 'rare-matches'].includes(name)
    const sets = hasSets ? parseIpset(saves(`${name}.ipset`), name) : { sets: new Map(), findings: [] }
    expect(sets.findings, name).toEqual([])
    expect(() => surveyServices({ rulesets, sets: sets.sets })).not.toThrow()
  }
})

test('node ports of kube-proxy’s nftables are asked at an address that takes them', () => {
  const text = readFileSync(new URL('../../test/golden/nftables-g1.list.txt', import.meta.url), 'utf8')
  const { ruleset } = parseNftList(text, 'g1.nft')
  const atNode = (nodeIps?: readonly string[]) =>
    surveyServices({ rulesets: [], nft: ruleset, ...(nodeIps !== undefined && { nodeIps }) })
      .filter(({ destination }) => destination.startsWith('this node'))
      .map(({ name, trace, anomalies }) => [name, trace.verdict.kind, trace.targets.length, anomalies])
  const expected = [
    ['shop/api:http', 'allowed', 1, []],
    ['shop/pay:https', 'allowed', 2, []],
    ['shop/void', 'rejected', 0, []],
  ]
  expect(atNode()).toEqual(expected)
  expect(atNode(['192.168.60.11', '192.168.50.11'])).toEqual(expected)
})
