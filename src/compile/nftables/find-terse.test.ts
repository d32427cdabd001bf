import { expect, test } from 'vitest'
import { parseNftList } from './parse-list'

const table = (body: string): string => `table ip t {\n${body}}\n`
const map = (elements = ''): string =>
  `\tmap m {\n\t\ttype ipv4_addr : verdict\n${elements === '' ? '' : `\t\telements = { ${elements} }\n`}\t}\n`
const base = '\tchain in {\n\t\ttype nat hook prerouting priority dstnat; policy accept;\n\t\tip daddr vmap @m\n\t}\n'
const chain = (name: string, rule: string): string => `\tchain ${name} {\n\t\t${rule}\n\t}\n`

function read(text: string): readonly [readonly string[], boolean | undefined] {
  const { findings, ruleset } = parseNftList(text, 'x')
  return [findings.map(({ code }) => code), ruleset.tables.get('ip t')?.sets.get('m')?.isTerse]
}

test('a chain that only left-out elements can lead to shows a listing of nft -t', () => {
  expect(read(table(map() + base + chain('far', 'dnat to 10.0.0.1')))).toEqual([['nft.terse'], true])
  expect(read(table(map() + base + chain('far', 'jump on') + chain('on', 'drop')))).toEqual([['nft.terse'], true])
})

test('a map that is empty in truth is told as it is', () => {
  // The fixed chains of kube-proxy that no Service leads to yet, and those it has emptied.
  const mark = chain('mark-for-masquerade', 'meta mark set meta mark | 0x00004000')
  expect(read(table(map() + base + mark))).toEqual([[], undefined])
  expect(read(table(map() + base + chain('gone', '')))).toEqual([[], undefined])
  expect(read(table(map('10.0.0.9 : goto far') + base + chain('far', 'dnat to 10.0.0.1')))).toEqual([[], undefined])
  const led = '\tchain out {\n\t\ttype nat hook output priority -100; policy accept;\n\t\tjump far\n\t}\n'
  expect(read(table(map() + base + led + chain('far', 'dnat to 10.0.0.1')))).toEqual([[], undefined])
})

test('a script may fill its maps later', () => {
  const script =
    'add table ip t\nadd map ip t m { type ipv4_addr : verdict; }\nadd chain ip t far\nadd rule ip t far dnat to 10.0.0.1\n'
  expect(read(script)[0]).toEqual([])
})
