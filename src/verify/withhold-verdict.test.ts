/** No `allowed` without rules to rest on. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseIp } from '#base/ip'
import { parseSave } from '#compile/iptables/parse-save'
import { parseNftList } from '#compile/nftables/parse-list'
import { traceRuleset } from '#trace/trace-ruleset'
import { recogniseNode } from './recognise-node'
import { isPartOfRuleset, withholdVerdict } from './withhold-verdict'

function answer(text: string, to: string): readonly [string, string | undefined] {
  const parsed = parseSave(text, 'x')
  const destination = parseIp(to)
  if (destination === undefined) throw new Error(to)
  const packet = { destination, destinationPort: 443, protocol: 'tcp' as const }
  const codes = new Set(recogniseNode(parsed).map((finding) => finding.code))
  const traced = traceRuleset({ rulesets: parsed.rulesets, packet }).value
  const { verdict } = withholdVerdict(traced, { rulesets: parsed.rulesets, family: destination.family, codes })
  return [verdict.kind, verdict.because[0].code]
}

const saved = (name: string): string => readFileSync(new URL(`../../test/saves/${name}`, import.meta.url), 'utf8')

test.each([
  ['IPVS mode', 'kube-proxy-ipvs.save', '10.96.0.1', 'trace.other-dataplane'],
  ['Cilium', 'cilium.save', '10.96.0.1', 'trace.other-dataplane'],
  ['another family', 'kube-proxy.save', 'fd00::1', 'trace.no-rules'],
])('with %s an untranslated packet is unknown', (_, name, to, code) => {
  expect(answer(saved(name), to)).toEqual(['unknown', code])
})

test('rules of the packet’s family, even none that take it, are ground enough', () => {
  expect(answer('*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n', '10.96.0.1')[0]).toBe('allowed')
})

test.each(['nft.terse', 'nft.cut-json'])('a listing that lacks parts (%s) is no ground', (code) => {
  const { rulesets } = parseSave('*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n', 'x')
  const destination = parseIp('10.96.0.1')
  if (destination === undefined) throw new Error('address')
  const traced = traceRuleset({ rulesets, packet: { destination, destinationPort: 443, protocol: 'tcp' } }).value
  const { verdict } = withholdVerdict(traced, { rulesets, family: 'ipv4', codes: new Set([code]) })
  expect([verdict.kind, verdict.because[0].code]).toEqual(['unknown', 'trace.incomplete'])
})

test.each([
  [
    'list chains',
    'table ip t {\n\tchain in {\n\t\ttype nat hook prerouting priority dstnat; policy accept;\n\t}\n\tchain far {\n\t}\n}\n',
    true,
  ],
  ['list chain', 'table ip t {\n\tchain far {\n\t\tdnat to 10.0.0.1\n\t}\n}\n', true],
  ['list set', 'table ip t {\n\tset s {\n\t\ttype ipv4_addr\n\t\telements = { 10.0.0.1 }\n\t}\n}\n', true],
  [
    'list ruleset, with policies alone',
    'table ip t {\n\tchain in {\n\t\ttype filter hook input priority 0; policy accept;\n\t}\n}\n',
    false,
  ],
  ['list ruleset, with a table alone', 'table ip t {\n}\n', false],
])('nft %s', (_, text, isPart) => {
  expect(isPartOfRuleset(parseNftList(text, 'x').ruleset)).toBe(isPart)
})
