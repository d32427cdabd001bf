/** Tables as nft 1.0.6 lists them, in what the goldens do not show. */
import { expect, test } from 'vitest'
import { constant } from './expression'
import { printDuration } from './print-duration'
import { printJson } from './print-json'
import { printList } from './print-list'
import { rulesetOf, type Table } from './ruleset'

const empty: Table = {
  family: 'inet',
  name: 't',
  flags: [],
  objects: [],
  sets: new Map(),
  flowtables: new Map(),
  chains: new Map(),
}

const print = (table: Partial<Table>): string => printList(rulesetOf([{ ...empty, ...table }]))

test('an empty table, and one with a comment', () => {
  expect(print({})).toBe('table inet t {\n}\n')
  expect(print({ comment: 'x' })).toBe('table inet t {\n\tcomment "x"\n}\n')
})

test('a blank line comes after flags, and none after a comment', () => {
  const chains = new Map([['c', { name: 'c', rules: [] }]])
  expect(print({ flags: ['dormant'], chains })).toBe('table inet t {\n\tflags dormant\n\n\tchain c {\n\t}\n}\n')
  expect(print({ comment: 'x', chains })).toBe('table inet t {\n\tcomment "x"\n\tchain c {\n\t}\n}\n')
})

test('tables follow each other without a blank line', () => {
  expect(printList(rulesetOf([empty, { ...empty, family: 'ip' }]))).toBe('table inet t {\n}\ntable ip t {\n}\n')
})

test('a flowtable and what uses it', () => {
  const flowtable = { name: 'f', hook: 'ingress', priority: 0, devices: ['eth0', 'eth1'], hasCounter: true, flags: [] }
  const table = {
    flowtables: new Map([['f', flowtable]]),
    chains: new Map([['c', { name: 'c', rules: [{ statements: [{ kind: 'flow', flowtable: 'f' } as const] }] }]]),
  }
  expect(print(table)).toBe(
    'table inet t {\n\tflowtable f {\n\t\thook ingress priority filter\n\t\tdevices = { eth0, eth1 }\n\t\tcounter\n\t}\n\n' +
      '\tchain c {\n\t\tflow add @f\n\t}\n}\n',
  )
  expect(printJson(rulesetOf([{ ...empty, ...table }]))).toContain(
    '{"flowtable": {"family": "inet", "name": "f", "table": "t", "hook": "ingress", "prio": 0, "dev": ["eth0", "eth1"]}}',
  )
})

test('a base chain on devices: one in quotes, several without', () => {
  const base = { type: 'filter', hook: 'ingress', priority: 10, policy: 'accept', flags: [] } as const
  const chains = new Map([
    ['a', { name: 'a', base: { ...base, devices: ['lo'] }, rules: [] }],
    ['b', { name: 'b', base: { ...base, devices: ['eth0', 'eth1'] }, rules: [] }],
  ])
  const listed = print({ family: 'netdev', chains })
  expect(listed).toContain('\t\ttype filter hook ingress device "lo" priority filter + 10; policy accept;\n')
  expect(listed).toContain(
    '\t\ttype filter hook ingress devices = { eth0, eth1 } priority filter + 10; policy accept;\n',
  )
})

test('handles, where they are known and asked for', () => {
  const rules = [{ statements: [{ kind: 'drop' } as const], comment: 'no', handle: 4 }]
  const ruleset = rulesetOf([{ ...empty, handle: 1, chains: new Map([['c', { name: 'c', handle: 3, rules }]]) }])
  expect(printList(ruleset, { hasHandles: true })).toBe(
    'table inet t { # handle 1\n\tchain c { # handle 3\n\t\tdrop comment "no" # handle 4\n\t}\n}\n',
  )
  expect(printJson(ruleset)).toContain(
    '{"rule": {"family": "inet", "table": "t", "chain": "c", "handle": 4, "comment": "no"',
  )
})

test('elements that expire, and the flag that a timeout makes needless', () => {
  const set = {
    name: 's',
    key: { kind: 'type', names: ['ipv4_addr'] },
    isDataInterval: false,
    flags: ['timeout'],
    timeoutMilliseconds: 10_800_000,
    isAutoMerged: false,
    statements: [],
    elements: [{ key: constant('10.1.2.3'), expiresMilliseconds: 10_799_992 }],
  } as const
  expect(print({ sets: new Map([['s', set]]) })).toContain(
    '\t\ttype ipv4_addr\n\t\ttimeout 3h\n\t\telements = { 10.1.2.3 expires 2h59m59s992ms }\n',
  )
  const { timeoutMilliseconds, ...without } = set
  expect(timeoutMilliseconds).toBe(10_800_000)
  expect(print({ sets: new Map([['s', without]]) })).toContain('\t\tflags timeout\n')
})

test('what is not known stands as it was read', () => {
  const statements = [{ kind: 'other', syntax: 'text', text: 'some new words' } as const]
  const table = { chains: new Map([['c', { name: 'c', rules: [{ statements }] }]]) }
  expect(print(table)).toContain('\t\tsome new words\n')
})

test.each([
  [0, '0s'],
  [10_000, '10s'],
  [90_000, '1m30s'],
  [600_000, '10m'],
  [10_800_000, '3h'],
  [90_061_000, '1d1h1m1s'],
  [60_500, '1m500ms'],
])('%i milliseconds are %s', (milliseconds, text) => {
  expect(printDuration(milliseconds)).toBe(text)
})
