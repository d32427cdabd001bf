/** The rulesets of test/saves-nft: nothing in them is unknown, and text and JSON of one state are one ruleset. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { plainRuleset, unknownParts } from '../../../test/saves-nft/plain-ruleset'
import { parseNftJson } from './parse-json'
import { parseNftList } from './parse-list'

const folder = new URL('../../../test/saves-nft/', import.meta.url)
const names = readdirSync(folder).flatMap((file) => (file.endsWith('.nft') ? [file.slice(0, -4)] : []))

function read(file: string): string {
  return readFileSync(new URL(file, folder), 'utf8')
}

test.each(names)('%s', (name) => {
  const [text, json] = [parseNftList(read(`${name}.nft`), name), parseNftJson(read(`${name}.json.txt`), name)]
  const isIptables = text.signs.has('iptables-nft')
  expect(text.findings.map(({ code }) => code)).toEqual(isIptables ? ['nft.iptables-nft'] : [])
  expect(json.findings).toEqual([])
  expect(unknownParts(text.ruleset)).toEqual([])
  expect(unknownParts(json.ruleset)).toEqual([])
  // JSON tells the matches of iptables-nft by name only, text translates them.
  if (!isIptables) expect(plainRuleset(json.ruleset, 'json')).toEqual(plainRuleset(text.ruleset, 'json'))
})

test('N13: kube-proxy’s tables between those of iptables-nft', () => {
  const { ruleset, signs, startLine } = parseNftList(read('node-dual.nft'), 'node')
  const kubeProxy = [...ruleset.tables.values()].filter(({ name }) => name === 'kube-proxy')
  expect(kubeProxy.map(({ family, sets }) => [family, sets.get('service-ips')?.elements.length])).toEqual([
    ['ip', 9],
    ['ip6', expect.any(Number)],
  ])
  expect({ signs: [...signs], startLine }).toEqual({ signs: ['iptables-nft'], startLine: 2 })
})
