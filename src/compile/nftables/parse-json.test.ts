/** The JSON of nft: of its versions, of commands, damaged, and what it says worse than text. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { plainRuleset } from '../../../test/saves-nft/plain-ruleset'
import type { Json } from './json-text'
import { parseNftJson } from './parse-json'
import { parseNftList } from './parse-list'
import type { Statement } from './statement'

function golden(name: string): string {
  return readFileSync(new URL(`../../../test/golden/nftables-${name}`, import.meta.url), 'utf8')
}

const table = { table: { family: 'ip', name: 't', handle: 7 } }
const chain = { chain: { family: 'ip', table: 't', name: 'c', handle: 1 } }

function jsonOf(...entries: readonly Json[]): string {
  return JSON.stringify({
    nftables: [{ metainfo: { version: '1.1.3', json_schema_version: 1 } }, table, chain, ...entries],
  })
}

function read(text: string) {
  return parseNftJson(text, 'node.json')
}

function statementsOf(...expr: readonly Json[]): readonly Statement[] | undefined {
  const { ruleset, findings } = read(jsonOf({ rule: { family: 'ip', table: 't', chain: 'c', expr } }))
  expect(findings).toEqual([])
  return ruleset.tables.get('ip t')?.chains.get('c')?.rules[0]?.statements
}

const flags = { payload: { protocol: 'tcp', field: 'flags' } }

test('N11: G1 is the same as JSON and as text', () => {
  const [json, list] = [read(golden('g1.json.txt')), parseNftList(golden('g1.list.txt'), 'list')]
  expect(json.findings).toEqual([])
  expect(plainRuleset(json.ruleset, 'json')).toEqual(plainRuleset(list.ruleset, 'json'))
})

test('handles and comments', () => {
  const rule = { family: 'ip', table: 't', chain: 'c', handle: 9, comment: 'why', expr: [{ accept: null }] }
  const found = read(jsonOf({ rule })).ruleset.tables.get('ip t')
  const handles = [found?.handle, found?.chains.get('c')?.handle, found?.chains.get('c')?.rules[0]?.handle]
  expect(handles).toEqual([7, 1, 9])
  expect(found?.chains.get('c')?.rules[0]?.comment).toBe('why')
})

describe('one form for what versions tell differently', () => {
  test('masks of flags, as a list and as a binary operation of many sides', () => {
    const masked = (mask: Json, right: Json) =>
      statementsOf({ match: { op: '==', left: { '&': [flags, mask] }, right } })
    const usual = masked(['fin', 'syn', 'rst'], 'syn')
    expect(masked({ '|': ['fin', 'syn', 'rst'] }, 'syn')).toEqual(usual)
    expect(masked({ '|': [{ '|': ['fin', 'syn'] }, 'rst'] }, 'syn')).toEqual(usual)
    expect(masked(7, 2)).toEqual(usual)
    expect(masked({ '|': ['fin', 'syn'] }, 0)).toEqual(
      statementsOf({ match: { op: '!', left: flags, right: ['fin', 'syn'] } }),
    )
  })

  test('numbers of `-n`, also those in the wrong order of bytes', () => {
    const matched = (left: Json, right: Json) => statementsOf({ match: { op: '==', left, right } })
    expect(matched({ meta: { key: 'l4proto' } }, 6)).toEqual(matched({ meta: { key: 'l4proto' } }, 'tcp'))
    expect(matched({ ct: { key: 'state' } }, 8)).toEqual(matched({ ct: { key: 'state' } }, 'new'))
    expect(matched({ meta: { key: 'protocol' } }, 8)).toEqual(matched({ meta: { key: 'protocol' } }, 'ip'))
    expect(matched({ payload: { protocol: 'arp', field: 'operation' } }, 256)).toEqual(
      matched({ payload: { protocol: 'arp', field: 'operation' } }, 'request'),
    )
  })

  test('an answer that goes without saying', () => {
    expect(statementsOf({ reject: { type: 'icmp', expr: 'port-unreachable' } })).toEqual([{ kind: 'reject' }])
    expect(statementsOf({ reject: null })).toEqual([{ kind: 'reject' }])
  })

  test('the family of a connection’s address', () => {
    const matched = (ct: Json) => statementsOf({ match: { op: '==', left: { ct }, right: '10.0.0.1' } })
    const usual = matched({ key: 'ip saddr', dir: 'original' })
    expect(matched({ key: 'saddr', dir: 'original' })).toEqual(usual)
    expect(matched({ key: 'saddr', family: 'ip', dir: 'original' })).toEqual(usual)
  })

  test('updates of maps, as an object and as the text that older ones put there', () => {
    const elem = { elem: { val: { payload: { protocol: 'ip', field: 'saddr' } }, timeout: 30 } }
    expect(statementsOf({ map: { op: 'update', elem, data: 1, map: '@m' } })).toEqual(
      statementsOf('update @m { ip saddr timeout 30s : 0x00000001 }'),
    )
  })

  test('rules that stand in a rule are text', () => {
    expect(statementsOf('jump {\n\t\t\ttcp dport 80 accept\n\t\t}')).toMatchObject([{ kind: 'block', rules: [{}] }])
  })

  test('types by name, in one text, in a list, and by expression', () => {
    const dataOf = (map: Json) => {
      const set = { map: { family: 'ip', table: 't', name: 'm', type: ['ipv4_addr', 'inet_service'], map } }
      return read(jsonOf(set)).ruleset.tables.get('ip t')?.sets.get('m')?.data
    }
    const names = { kind: 'type', names: ['ipv4_addr', 'inet_service'] }
    expect(dataOf('ipv4_addr . inet_service')).toEqual(names)
    expect(dataOf(['ipv4_addr', 'inet_service'])).toEqual(names)
    expect(dataOf({ typeof: { meta: { key: 'mark' } } })).toEqual({
      kind: 'typeof',
      expression: { kind: 'meta', key: 'mark' },
    })
  })
})

describe('numbers', () => {
  test('beyond what a number holds they are hexadecimal text', () => {
    const raw =
      '{"match": {"op": "==", "left": {"payload": {"base": "th", "offset": 0, "len": 64}}, "right": 9007199254740993}}'
    const rule = `{"rule": {"family": "ip", "table": "t", "chain": "c", "comment": "12345678901234567890", "expr": [${raw}]}}`
    const { ruleset } = read(`{"nftables": [${rule}]}`)
    const [read64] = ruleset.tables.get('ip t')?.chains.get('c')?.rules ?? []
    expect(read64?.statements).toMatchObject([{ right: { value: '0x20000000000001' } }])
    expect(read64?.comment).toBe('12345678901234567890')
  })

  test('negative ones are unsigned', () => {
    const left = { payload: { base: 'th', offset: 0, len: 64 } }
    expect(statementsOf({ match: { op: '==', left, right: -1 } })).toMatchObject([
      { right: { value: '0xffffffffffffffff' } },
    ])
  })
})

describe('what is not usual', () => {
  test('statements and selectors of a newer nft are kept', () => {
    expect(statementsOf({ wonder: { depth: 5 } }, { drop: null })).toEqual([
      { kind: 'other', syntax: 'json', text: '{"wonder":{"depth":5}}' },
      { kind: 'drop' },
    ])
    const left = { payload: { tunnel: 'vxlan', protocol: 'ip', field: 'saddr' } }
    expect(statementsOf({ match: { op: '==', left, right: '10.0.0.1' } })).toMatchObject([
      { left: { kind: 'other', syntax: 'json' }, right: { value: '10.0.0.1' } },
    ])
  })

  test('commands are done: add, insert, flush', () => {
    const rule = (expr: Json) => ({ rule: { family: 'ip', table: 't', chain: 'c', expr: [expr] } })
    const text = jsonOf(
      { flush: { ruleset: null } },
      { add: table },
      { add: chain },
      { add: rule({ accept: null }) },
      { insert: rule({ drop: null }) },
    )
    const parse = read(text)
    expect(
      parse.ruleset.tables
        .get('ip t')
        ?.chains.get('c')
        ?.rules.map(({ statements }) => statements[0]?.kind),
    ).toEqual(['drop', 'accept'])
    expect([...parse.signs]).toEqual(['nft-script'])
  })

  test('text around it is passed over', () => {
    const text = `root@node-a:~# nft -j list ruleset\nwarning: stmt ops chain have no json callback\n${jsonOf()}\nroot@node-a:~#`
    expect(read(text)).toMatchObject({ findings: [] })
    expect([...read(text).ruleset.tables.keys()]).toEqual(['ip t'])
  })

  test('a text that was cut gives what it holds', () => {
    const text = golden('g1.json.txt')
    const parse = read(text.slice(0, text.length / 2))
    expect(parse.findings.map(({ code }) => code)).toContain('nft.cut-json')
    expect(parse.ruleset.tables.get('ip kube-proxy')?.chains.size).toBeGreaterThan(10)
  })

  test('what is not nft’s JSON is told', () => {
    expect(read('{"items": []}').findings).toMatchObject([{ code: 'nft.bad-json', severity: 'error' }])
    expect(read('').findings).toMatchObject([{ code: 'nft.bad-json' }])
  })

  test('an entry that cannot be read is left out, with its place', () => {
    const rule = { rule: { family: 'ip', table: 't', chain: 'c', expr: [{ match: { op: '==' } }] } }
    expect(read(jsonOf(rule)).findings).toMatchObject([{ code: 'nft.bad-json', origin: { index: 'nftables[3]' } }])
  })

  test('a chain that is led to and not there is told', () => {
    const rule = { rule: { family: 'ip', table: 't', chain: 'c', expr: [{ jump: { target: 'away' } }] } }
    expect(read(jsonOf(rule)).findings).toMatchObject([{ code: 'nft.missing-chain' }])
  })
})

test('a listing of nft -t keeps its sets from being taken for empty', () => {
  const chain = (name: string) => ({ chain: { family: 'ip', table: 't', name } })
  const entries = [
    { table: { family: 'ip', name: 't' } },
    { map: { family: 'ip', table: 't', name: 'm', type: 'ipv4_addr', map: 'verdict' } },
    chain('far'),
    { rule: { family: 'ip', table: 't', chain: 'far', expr: [{ dnat: { addr: '10.0.0.1' } }] } },
  ]
  const { ruleset, findings } = parseNftJson(JSON.stringify({ nftables: entries }), 'x.json')
  expect(findings.map(({ code }) => code)).toEqual(['nft.terse'])
  expect(ruleset.tables.get('ip t')?.sets.get('m')?.isTerse).toBe(true)
})
