/** The table around the gallery's statements: a set, a map or an object of every kind. */
import { constant, type Element } from '#compile/nftables/expression'
import { concat, meta, payload } from '#compile/nftables/rule-parts'
import type { DataType, NamedObject, NamedSet, Table } from '#compile/nftables/ruleset'
import type { Statement } from '#compile/nftables/statement'
import type { Wing } from './nftables-gallery'

const named = (...names: readonly string[]): DataType => ({ kind: 'type', names })
const key = (value: string | number, more: Partial<Element> = {}): Element => ({ key: constant(value), ...more })
const setOf = (name: string, type: DataType, more: Partial<NamedSet> = {}): NamedSet => ({
  name,
  key: type,
  isDataInterval: false,
  flags: [],
  isAutoMerged: false,
  statements: [],
  elements: [],
  ...more,
})
const prefix = (address: string, length: number) => ({ kind: 'prefix', address: constant(address), length }) as const
const hour = 3_600_000

const sets: readonly NamedSet[] = [
  setOf('s1', named('ipv4_addr'), {
    flags: ['interval'],
    isAutoMerged: true,
    comment: 'some',
    policy: 'memory',
    elements: [
      { key: constant('1.2.3.4'), comment: 'x' },
      { key: prefix('10.0.0.0', 8) },
      { key: { kind: 'range', from: constant('192.168.1.1'), to: constant('192.168.1.9') } },
    ],
  }),
  setOf(
    's2',
    { kind: 'typeof', expression: concat(payload('ip', 'saddr'), payload('tcp', 'dport')) },
    {
      flags: ['interval'],
      elements: [
        { key: concat(prefix('10.0.0.0', 8), { kind: 'range', from: constant(80), to: constant(90) }) },
        { key: concat(constant('1.1.1.1'), constant(22)), comment: 'c' },
      ],
    },
  ),
  setOf('s3', named('ipv4_addr'), { flags: ['dynamic'], size: 10 }),
  setOf('s9', named('ipv4_addr'), {
    flags: ['dynamic', 'timeout'],
    size: 1000,
    timeoutMilliseconds: hour,
    gcIntervalMilliseconds: 10_000,
  }),
  setOf('counted', named('ipv4_addr'), {
    statements: [{ kind: 'counter', packets: 0, bytes: 0 }],
    elements: [
      key('10.0.0.1', { statements: [{ kind: 'counter', packets: 3, bytes: 4 }], comment: 'q' }),
      key('10.0.0.2', { statements: [{ kind: 'counter', packets: 0, bytes: 0 }] }),
    ],
  }),
  setOf('ports', named('inet_service'), { elements: [1, 2, 3, 4, 5, 6, 7].map((port) => key(port)) }),
  setOf('names', named('ifname'), { elements: [key('a'), key('lo'), key('eth0')] }),
  setOf('marks', { kind: 'typeof', expression: meta('mark') }, { flags: ['constant'], elements: [key(1), key(256)] }),
  setOf(
    'flagged',
    { kind: 'typeof', expression: payload('tcp', 'flags') },
    {
      elements: [{ key: { kind: 'binary', operator: '|', left: constant('fin'), right: constant('syn') } }, key('syn')],
    },
  ),
  setOf('m1', named('ipv4_addr'), {
    data: named('ipv4_addr'),
    flags: ['interval'],
    elements: [{ key: prefix('10.1.0.0', 16), data: constant('1.1.1.1') }],
  }),
  setOf(
    'm2',
    { kind: 'typeof', expression: concat(payload('ip', 'saddr'), payload('th', 'dport')) },
    {
      data: { kind: 'typeof', expression: meta('mark') },
      elements: [{ key: concat(constant('1.1.1.1'), constant(80)), data: constant(16) }],
    },
  ),
  setOf('m4x', named('ipv4_addr'), {
    data: named('inet_service'),
    flags: ['dynamic', 'timeout'],
    size: 10,
    timeoutMilliseconds: hour,
  }),
  setOf('m5', named('inet_service'), { data: named('counter'), elements: [key(80, { data: constant('cn') })] }),
  setOf('m6', named('ipv4_addr'), {
    data: named('verdict'),
    elements: [
      key('1.1.1.1', { data: { kind: 'jump', target: 'c2' }, comment: 'y' }),
      key('1.1.1.2', { data: { kind: 'drop' } }),
    ],
  }),
  setOf('m7', named('ipv4_addr'), {
    data: named('ipv4_addr', 'inet_service'),
    elements: [key('1.1.1.1', { data: concat(constant('2.2.2.2'), constant(80)) })],
  }),
]

const objects: readonly NamedObject[] = [
  { kind: 'counter', name: 'cn', packets: 3, bytes: 20, comment: 'cc' },
  { kind: 'quota', name: 'q1', isOver: true, bytes: 10 * 1024 * 1024, usedBytes: 5 },
  { kind: 'limit', name: 'l1', isOver: false, rate: 10, unit: 'packets', per: 'second', burst: 5 },
  { kind: 'limit', name: 'l2', isOver: true, rate: 10 * 1024 * 1024, unit: 'bytes', per: 'second', burst: 5 * 1024 },
  { kind: 'ct helper', name: 'h1', type: 'ftp', protocol: 'tcp', l3protocol: 'ip' },
  {
    kind: 'ct timeout',
    name: 't1',
    protocol: 'tcp',
    l3protocol: 'ip',
    policy: [
      { state: 'established', seconds: 100 },
      { state: 'close', seconds: 4 },
    ],
  },
  {
    kind: 'ct expectation',
    name: 'e1',
    protocol: 'tcp',
    port: 9876,
    timeoutMilliseconds: 120_000,
    size: 12,
    l3protocol: 'ip',
  },
  { kind: 'synproxy', name: 'sp', mss: 1460, windowScale: 7, flags: ['timestamp', 'sack-perm'] },
]

/** A table of the wing's family with these rules; `inet` has all sets and objects. */
export function galleryTable({ family, type, hook }: Wing, rules: readonly (readonly Statement[])[]): Table {
  const isFull = family === 'inet'
  const priority = type === 'nat' ? (hook === 'postrouting' ? 100 : -100) : 0
  const devices = hook === 'ingress' ? ['lo'] : []
  return {
    family,
    name: 't',
    comment: 'a gallery',
    flags: [],
    objects: isFull ? objects : [],
    sets: new Map(isFull ? sets.map((set) => [set.name, set]) : []),
    flowtables: new Map(),
    chains: new Map([
      ['c2', { name: 'c2', comment: 'empty', rules: [] }],
      [
        'c',
        {
          name: 'c',
          base: { type, hook, priority, devices, policy: 'accept', flags: [] },
          rules: rules.map((statements, at) => ({ statements, comment: `exhibit ${at}` })),
        },
      ],
    ]),
  }
}
