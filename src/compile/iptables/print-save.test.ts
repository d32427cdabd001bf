/** Printing any ruleset: real saves come back as they were, and restore text becomes what the kernel would save. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { normalizeRule, normalizeRuleset } from './normalize-rule'
import { parseSave } from './parse-save'
import { printRestore } from './print-restore'
import { printRule } from './print-rule'
import { printSave } from './print-save'
import { restoreTablesOf } from './restore-table'
import type { Chain, Rule, Ruleset, Table } from './rule'
import { comment, jump, match, option, rule, source, toPort } from './rule-parts'

const savesFolder = new URL('../../../test/saves/', import.meta.url)
const saves = readdirSync(savesFolder).filter((name) => name.endsWith('.save'))

function onlyRuleset(text: string): Ruleset {
  const [ruleset, ...more] = parseSave(text, 'test').rulesets
  if (ruleset === undefined || more.length > 0) throw new Error('not one ruleset')
  return ruleset
}

/** Restore text has no header: a table without addresses may be of either family, and is read by itself. */
function joined(rulesets: readonly Ruleset[]): Ruleset {
  const [first] = rulesets
  if (first === undefined) throw new Error('no ruleset')
  return { ...first, tables: new Map(rulesets.flatMap(({ tables }) => [...tables])) }
}

/** Chain and rule lines, whatever the order of tables. */
function linesOf(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .sort()
}

describe.each(saves)('%s', (name) => {
  const text = readFileSync(new URL(name, savesFolder), 'utf8')
  const options = { date: 'now', hasCounters: text.includes('] -A ') }

  test('prints as it was', () => {
    expect(linesOf(printSave(onlyRuleset(text), options))).toEqual(linesOf(text))
  })

  test('is normal already', () => {
    expect(linesOf(printSave(normalizeRuleset(onlyRuleset(text)), options))).toEqual(linesOf(text))
  })

  test('prints as restore text that reads the same', () => {
    const restored = joined(parseSave(printRestore(restoreTablesOf(onlyRuleset(text))), 'test').rulesets)
    expect(linesOf(printSave(restored, { ...options, hasCounters: false }))).toEqual(
      linesOf(printSave(onlyRuleset(text), { ...options, hasCounters: false })),
    )
  })
})

/** A rule line in any form, as saved afterwards; checked against iptables 1.8.9 by loading each. */
const conversions: readonly (readonly [given: string, saved: string])[] = [
  ['-m tcp -p tcp -d 10.96.0.1 --dport 443 -j X', '-d 10.96.0.1/32 -p tcp -m tcp --dport 443 -j X'],
  ['-p 6 -m tcp --dport 80:80 --sport 1:2 -j X', '-p tcp -m tcp --sport 1:2 --dport 80 -j X'],
  ['-p tcp -m tcp --syn -j X', '-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j X'],
  ['-s 10.1.2.3/8 -d 0.0.0.0/0 -i + -o eth+ -p all -j X', '-s 10.0.0.0/8 -o eth+ -j X'],
  ['-s 10.1.2.3/255.0.255.0 -j X', '-s 10.0.2.0/255.0.255.0 -j X'],
  ['-s 10.1.2.3/255.255.0.0 -j X', '-s 10.1.0.0/16 -j X'],
  ['! -f -s 1.2.3.4 -p ICMPV6 -j X', '-s 1.2.3.4/32 -p ipv6-icmp ! -f -j X'],
  ['-m comment --comment ns/name -j X', '-m comment --comment "ns/name" -j X'],
  [String.raw`-m comment --comment "it's \"x\" \\ y" -j X`, String.raw`-m comment --comment "it\'s \"x\" \\ y" -j X`],
  ['-m conntrack ! --ctstate ESTABLISHED,DNAT,NEW -j X', '-m conntrack ! --ctstate NEW,ESTABLISHED,DNAT -j X'],
  ['-m mark ! --mark 0x00004000/0x00004000 -j X', '-m mark ! --mark 0x4000/0x4000 -j X'],
  ['-m mark --mark 16384 -j X', '-m mark --mark 0x4000 -j X'],
  ['-m connmark --mark 010/0x10 -j X', '-m connmark --mark 0x8/0x10 -j X'],
  ['-j MARK --or-mark 0x00004000', '-j MARK --set-xmark 0x4000/0x4000'],
  ['-j MARK --xor-mark 0x00004000', '-j MARK --set-xmark 0x4000/0x0'],
  ['-j MARK --and-mark 1', '-j MARK --set-xmark 0x0/0xfffffffe'],
  ['-j MARK --set-mark 1/2', '-j MARK --set-xmark 0x1/0x3'],
  ['-j MARK --set-mark 5', '-j MARK --set-xmark 0x5/0xffffffff'],
  ['-j CONNMARK --save-mark', '-j CONNMARK --save-mark --nfmask 0xffffffff --ctmask 0xffffffff'],
  ['-j REJECT', '-j REJECT --reject-with icmp-port-unreachable'],
  ['-j LOG --log-level 4 --log-prefix "hi there: "', '-j LOG --log-prefix "hi there: "'],
  ['-m recent --set -j X', '-m recent --set --name DEFAULT --mask 255.255.255.255 --rsource -j X'],
  [
    '-m recent --name A --rcheck --seconds 600 --reap -j X',
    '-m recent --rcheck --seconds 600 --reap --name A --mask 255.255.255.255 --rsource -j X',
  ],
  [
    '-m statistic --probability 0.3333333333 --mode random -j X',
    '-m statistic --mode random --probability 0.33333333349 -j X',
  ],
  ['-m limit --limit 5/minute --limit-burst 5 -j X', '-m limit --limit 5/min -j X'],
  ['-m limit --limit 120/m --limit-burst 7 -j X', '-m limit --limit 2/sec --limit-burst 7 -j X'],
  ['-m addrtype --dst-type local --src-type unicast -j X', '-m addrtype --src-type UNICAST --dst-type LOCAL -j X'],
  ['-m comment --comment "no target"', '-m comment --comment "no target"'],
]

function parseRule(text: string): Rule {
  const [read] = onlyRuleset(`*nat\n:A - [0:0]\n-A A ${text}\nCOMMIT\n`).tables.get('nat')?.chains.get('A')?.rules ?? []
  if (read === undefined) throw new Error(`no rule in ${text}`)
  return read
}

test.each(conversions)('%s is saved as %s', (given, saved) => {
  const normal = normalizeRule(parseRule(given), 'ipv4')
  expect(printRule(normal, 'saved')).toBe(` ${saved}`)
  expect(printRule(normalizeRule(parseRule(saved), 'ipv4'), 'saved')).toBe(` ${saved}`)
})

describe('printRule', () => {
  test('puts the options of a port match behind the headers that follow it', () => {
    const built = rule([comment('a b'), ...toPort('tcp', 80, '10.0.0.1'), source('10.0.0.0/8')], jump('X'))
    expect(printRule(built, 'given')).toBe(
      ' -m comment --comment "a b" -m tcp -p tcp -d 10.0.0.1 --dport 80 -s 10.0.0.0/8 -j X',
    )
    expect(parseRule(printRule(built, 'given').slice(1)).clauses).toEqual(built.clauses)
  })

  test('quotes what is free text only when it is saved', () => {
    const built = rule([match('comment', option('--comment', 'ns/name'))], jump('X'))
    expect(printRule(built, 'given')).toBe(' -m comment --comment ns/name -j X')
    expect(printRule(built, 'saved')).toBe(' -m comment --comment "ns/name" -j X')
  })

  test('writes a goto, and a rule without a target', () => {
    expect(printRule({ clauses: [], action: { kind: 'goto', target: 'X', options: [] } }, 'saved')).toBe(' -g X')
    expect(printRule(rule([comment('only')]), 'saved')).toBe(' -m comment --comment only')
  })
})

test('chains, tables and headers of a save', () => {
  const chainOf = (name: string, fields: Partial<Chain> = {}): [string, Chain] => [name, { name, rules: [], ...fields }]
  const prerouting = chainOf('PREROUTING', { policy: 'ACCEPT', counters: { packets: 1, bytes: 2 } })
  const nat: Table = { name: 'nat', chains: new Map([chainOf('ZED'), prerouting, chainOf('ABC')]) }
  const mangle: Table = { name: 'mangle', chains: new Map([chainOf('X')]) }
  const ruleset: Ruleset = {
    family: 'ipv4',
    tables: new Map([
      ['nat', nat],
      ['mangle', mangle],
    ]),
  }
  expect(printSave(normalizeRuleset(ruleset, 'legacy'), { date: 'today', version: '1.8.4' })).toBe(
    [
      '# Generated by iptables-save v1.8.4 on today',
      '*mangle',
      ':X - [0:0]',
      'COMMIT',
      '# Completed on today',
      '# Generated by iptables-save v1.8.4 on today',
      '*nat',
      ':PREROUTING ACCEPT [1:2]',
      ':ABC - [0:0]',
      ':ZED - [0:0]',
      'COMMIT',
      '# Completed on today',
      '',
    ].join('\n'),
  )
})
