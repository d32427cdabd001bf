/** Statements of every kind beside the text that nft 1.0.6 lists for them: what the printers must write. */
import { constant, type Element, type Expression, type Selector, type Verdict } from '#compile/nftables/expression'
import { concat, meta, payload, reference } from '#compile/nftables/rule-parts'
import type { Hook, TableFamily } from '#compile/nftables/ruleset'
import type { Match, Nat, Statement } from '#compile/nftables/statement'

export type Exhibit = readonly [text: string, ...statements: Statement[]]

export type Wing = {
  readonly family: TableFamily
  readonly type: 'filter' | 'nat'
  readonly hook: Hook
  readonly exhibits: readonly Exhibit[]
}

type Operator = Match['operator']

const is = (left: Expression, right: Expression | string | number | boolean, operator: Operator = '=='): Statement => ({
  kind: 'match',
  operator,
  left,
  right: typeof right === 'object' ? right : constant(right),
})
const ct = (key: string, direction?: 'original' | 'reply'): Selector =>
  direction === undefined ? { kind: 'ct', key } : { kind: 'ct', key, direction }
const list = (...names: readonly string[]): Expression => ({ kind: 'list', items: names.map(constant) })
const set = (...keys: readonly (Expression | string | number)[]): Expression => ({
  kind: 'set',
  elements: keys.map((key) => ({ key: typeof key === 'object' ? key : constant(key) })),
})
type Pair = readonly [string | number | Expression, Verdict | Expression | string | number]
const pairs = (...entries: readonly Pair[]): Expression => ({
  kind: 'set',
  elements: entries.map(
    ([key, data]): Element => ({
      key: typeof key === 'object' ? key : constant(key),
      data: typeof data === 'object' ? data : constant(data),
    }),
  ),
})
const range = (from: string | number, to: string | number): Expression => ({
  kind: 'range',
  from: constant(from),
  to: constant(to),
})
const prefix = (address: string, length: number): Expression => ({ kind: 'prefix', address: constant(address), length })
type Operand = Expression | number | string
const binary = (left: Expression, operator: '&' | '|' | '^' | '<<' | '>>', right: Operand): Expression => ({
  kind: 'binary',
  operator,
  left,
  right: typeof right === 'object' ? right : constant(right),
})
const map = (key: Expression, data: Expression): Expression => ({ kind: 'map', key, data })
const vmap = (key: Expression, data: Expression): Statement => ({ kind: 'vmap', key, data })
const mangle = (key: Expression, value: Expression | string | number): Statement => ({
  kind: 'mangle',
  key,
  value: typeof value === 'object' ? value : constant(value),
})
const drop: Verdict = { kind: 'drop' }
const accept: Verdict = { kind: 'accept' }
const jump: Verdict = { kind: 'jump', target: 'c2' }
const goTo: Verdict = { kind: 'goto', target: 'c2' }
const fib = (result: string, ...flags: readonly string[]): Selector => ({ kind: 'fib', result, flags })
const mark = meta('mark')
const raw = (base: string, offset: number, length: number): Selector => ({ kind: 'raw-payload', base, offset, length })
const saddr = payload('ip', 'saddr')
const daddr = payload('ip', 'daddr')
const dport = payload('tcp', 'dport')
const flags = payload('tcp', 'flags')
const numgen = (mode: 'inc' | 'random', modulus: number, offset = 0): Selector => ({
  kind: 'numgen',
  mode,
  modulus,
  offset,
})
const object = (kind: Extract<Statement, { kind: 'object' }>['object'], name: string | Expression): Statement => ({
  kind: 'object',
  object: kind,
  name: typeof name === 'string' ? constant(name) : name,
})
const nat = (kind: Nat['kind'], more: Partial<Omit<Nat, 'kind'>> = {}): Statement => ({
  kind,
  isPrefix: false,
  flags: [],
  ...more,
})
const tcpOnly = is(meta('l4proto'), 'tcp')
const limit = (rate: number, burst = 5, isOver = false): Statement => ({
  kind: 'limit',
  isOver,
  rate,
  unit: 'packets',
  per: 'second',
  burst,
})
const byteLimit = (rate: number, burst: number): Statement => ({
  kind: 'limit',
  isOver: true,
  rate,
  unit: 'bytes',
  per: 'second',
  burst,
})
const quota = (bytes: number, usedBytes = 0, isOver = false): Statement => ({ kind: 'quota', bytes, usedBytes, isOver })
const log = (more: Partial<Extract<Statement, { kind: 'log' }>> = {}): Statement => ({
  kind: 'log',
  flags: [],
  ...more,
})
const refuse = (type: 'icmp' | 'icmpv6' | 'icmpx', code: string): Statement => ({
  kind: 'reject',
  type,
  code: constant(code),
})
const update = (element: Element, operation: 'add' | 'update' | 'delete' = 'update', name = 's9'): Statement => ({
  kind: 'set-update',
  operation,
  set: name,
  element,
})

const conntrack: readonly Exhibit[] = [
  ['ct state established,related accept', is(ct('state'), list('established', 'related'), 'in'), accept],
  ['ct state new', is(ct('state'), 'new', 'in')],
  ['ct state != new', is(ct('state'), 'new', '!=')],
  ['ct state == new', is(ct('state'), 'new')],
  ['ct state { established, new }', is(ct('state'), set('established', 'new'))],
  ['ct state vmap { invalid : drop, new : jump c2 }', vmap(ct('state'), pairs(['invalid', drop], ['new', jump]))],
  ['ct state & new == new', is(binary(ct('state'), '&', 'new'), 'new')],
  ['ct status snat,dnat', is(ct('status'), list('snat', 'dnat'), 'in')],
  ['ct mark 0x0000000a', is(ct('mark'), 10)],
  ['ct original ip saddr 1.1.1.1', is(ct('ip saddr', 'original'), '1.1.1.1')],
  ['ct original bytes > 1000', is(ct('bytes', 'original'), 1000, '>')],
  ['ct count over 5', { kind: 'ct-count', isOver: true, count: 5 }],
  ['ct count 5', { kind: 'ct-count', isOver: false, count: 5 }],
  ['ct expiration > 1h', is(ct('expiration'), 3600, '>')],
  ['ct expiration 60s-7200s', is(ct('expiration'), range(60, 7200))],
  ['ct expiration { 1m, 2h }', is(ct('expiration'), set(60, 7200))],
  ['ct direction reply', is(ct('direction'), 'reply')],
  ['ct label 5', is(ct('label'), 5, 'in')],
  ['ct zone 5', is(ct('zone'), 5)],
  ['ct l3proto ipv4', is(ct('l3proto'), 'ipv4')],
  ['ct helper "ftp"', is(ct('helper'), 'ftp')],
  ['ct mark set meta mark | 0x00000010', mangle(ct('mark'), binary(mark, '|', 16))],
  ['ct zone set 5', mangle(ct('zone'), 5)],
  ['ct event set new,destroy', mangle(ct('event'), list('new', 'destroy'))],
  ['ct helper set "h1"', object('ct helper', 'h1')],
  ['ct timeout set "t1"', object('ct timeout', 't1')],
  ['ct expectation set "e1"', object('ct expectation', 'e1')],
  ['ct helper set tcp dport map { 21 : "h1" }', object('ct helper', map(dport, pairs([21, 'h1'])))],
]

const links: readonly Exhibit[] = [
  ['iifname { "lo", "eth0" } oifname "cali*"', is(meta('iifname'), set('lo', 'eth0')), is(meta('oifname'), 'cali*')],
  ['iifname != "eth0"', is(meta('iifname'), 'eth0', '!=')],
  ['iifname vmap { "eth*" : drop, "lo" : accept }', vmap(meta('iifname'), pairs(['eth*', drop], ['lo', accept]))],
  ['iif "lo"', is(meta('iif'), 'lo')],
  ['iif { "lo", 99 }', is(meta('iif'), set('lo', '99'))],
  ['iif "lo"-5', is(meta('iif'), range('lo', '5'))],
  ['iifgroup "default"', is(meta('iifgroup'), 'default')],
  ['iifgroup 5', is(meta('iifgroup'), 5)],
  ['meta iiftype ether', is(meta('iiftype'), 'ether')],
  ['meta iifkind "veth"', is(meta('iifkind'), 'veth')],
  ['meta sdif 5', is(meta('sdif'), '5')],
  ['meta pkttype broadcast', is(meta('pkttype'), 'broadcast')],
  ['fib saddr . iif oif missing drop', is(fib('oif', 'saddr', 'iif'), false), drop],
  ['fib saddr . mark oif exists', is(fib('oif', 'saddr', 'mark'), true)],
  ['fib daddr . iif oif "lo"', is(fib('oif', 'daddr', 'iif'), 'lo')],
  ['fib daddr oifname "lo"', is(fib('oifname', 'daddr'), 'lo')],
  ['fib daddr type local', is(fib('type', 'daddr'), 'local')],
  ['fib daddr type vmap { local : drop }', vmap(fib('type', 'daddr'), pairs(['local', drop]))],
  ['fib daddr . iif type { unicast, local }', is(fib('type', 'daddr', 'iif'), set('unicast', 'local'))],
  ['rt ip nexthop 1.1.1.1', is({ kind: 'rt', key: 'nexthop', family: 'ip' }, '1.1.1.1')],
  ['rt classid 5', is({ kind: 'rt', key: 'classid' }, '5')],
  ['rt ipsec exists', is({ kind: 'rt', key: 'ipsec' }, true)],
  ['socket transparent 1', is({ kind: 'socket', key: 'transparent' }, 1)],
  ['socket mark 0x00000010', is({ kind: 'socket', key: 'mark' }, 16)],
  ['osf ttl loose name "Linux"', is({ kind: 'osf', key: 'name', ttl: 'loose' }, 'Linux')],
  [
    'ipsec in ip saddr 1.1.1.1',
    is({ kind: 'ipsec', direction: 'in', policy: 0, family: 'ip', key: 'saddr' }, '1.1.1.1'),
  ],
  ['ipsec in spnum 1 spi 5', is({ kind: 'ipsec', direction: 'in', policy: 1, key: 'spi' }, 5)],
]

const metaData: readonly Exhibit[] = [
  ['meta mark & 0x0000ff00 == 0x00001200', is(binary(mark, '&', 0xff00), 0x1200)],
  ['meta mark & 0x000000ff == { 0x00000001, 0x00000002 }', is(binary(mark, '&', 255), set(1, 2))],
  ['meta mark & 0x000000ff vmap { 0x00000001 : drop }', vmap(binary(mark, '&', 255), pairs([1, drop]))],
  ['meta mark { 0x00000001-0x00000005, 0x00000009 }', is(mark, set(range(1, 5), 9))],
  ['meta mark 0x00000000/1', is(mark, { kind: 'prefix', address: constant(0), length: 1 })],
  ['meta mark set meta mark << 8', mangle(mark, binary(mark, '<<', 8))],
  ['meta mark set (meta mark & 0x000000ff) << 8', mangle(mark, binary(binary(mark, '&', 255), '<<', 8))],
  ['meta mark set meta mark >> 8 & 0x0000000f', mangle(mark, binary(binary(mark, '>>', 8), '&', 15))],
  [
    'meta mark set meta mark & 0xffff1234 | 0x00001234',
    mangle(mark, binary(binary(mark, '&', 0xffff1234), '|', 0x1234)),
  ],
  [
    'meta mark set tcp dport map { 80 : 0x00000001, 90 : 0x00000002 }',
    mangle(mark, map(dport, pairs([80, 1], [90, 2]))),
  ],
  [
    'meta mark set ip saddr . th dport map @m2',
    mangle(mark, map(concat(saddr, payload('th', 'dport')), reference('m2'))),
  ],
  ['meta l4proto { tcp, 200 }', is(meta('l4proto'), set('tcp', 200))],
  ['meta protocol { ip, 0x1234, ip6 }', is(meta('protocol'), set('ip', 0x1234, 'ip6'))],
  ['meta nfproto ipv4', is(meta('nfproto'), 'ipv4')],
  ['meta priority { none, 1:10 }', is(meta('priority'), set('none', '1:10'))],
  [
    'meta priority set ip dscp map { cs1 : 1:10 }',
    mangle(meta('priority'), map(payload('ip', 'dscp'), pairs(['cs1', '1:10']))),
  ],
  ['meta skuid { 0, 1000 }', is(meta('skuid'), set(0, 1000))],
  ['meta skuid 1000-2000', is(meta('skuid'), range(1000, 2000))],
  ['meta length 100-200', is(meta('length'), range(100, 200))],
  ['meta cgroup 256', is(meta('cgroup'), 256)],
  ['meta ipsec exists', is(meta('ipsec'), true)],
  ['meta hour "10:00"-"12:00"', is(meta('hour'), range('10:00', '12:00'))],
  ['meta day { "Monday", "Friday" }', is(meta('day'), set('Monday', 'Friday'))],
  ['meta time >= "2024-01-01 00:00:00"', is(meta('time'), '2024-01-01 00:00:00', '>=')],
  ['meta random & 2147483647 < 715827883', is(binary(meta('random'), '&', 2147483647), 715827883, '<')],
  ['meta nftrace set 1', mangle(meta('nftrace'), 1)],
  ['numgen inc mod 4 offset 2 < 3', is(numgen('inc', 4, 2), 3, '<')],
  ['numgen random mod 2 vmap { 0 : goto c2, 1 : drop }', vmap(numgen('random', 2), pairs([0, goTo], [1, drop]))],
  [
    'jhash ip saddr . tcp dport mod 5 seed 0xdeadbeef offset 10 11',
    is({ kind: 'jhash', of: concat(saddr, dport), modulus: 5, seed: 0xdeadbeef, offset: 10 }, 11),
  ],
  ['symhash mod 3 offset 5 6', is({ kind: 'symhash', modulus: 3, offset: 5 }, 6)],
]

const headers: readonly Exhibit[] = [
  [
    'ip saddr != 10.0.0.0/8 ip daddr 1.1.1.1-1.1.1.9',
    is(saddr, prefix('10.0.0.0', 8), '!='),
    is(daddr, range('1.1.1.1', '1.1.1.9')),
  ],
  ['ip saddr { 10.0.0.0/8 }', is(saddr, set(prefix('10.0.0.0', 8)))],
  [
    'ip saddr { 1.1.1.1, 2.2.2.2-2.2.2.9, 10.0.0.0/8 }',
    is(saddr, set('1.1.1.1', range('2.2.2.2', '2.2.2.9'), prefix('10.0.0.0', 8))),
  ],
  ['ip saddr != { 1.1.1.1 }', is(saddr, set('1.1.1.1'), '!=')],
  ['ip saddr @s1', is(saddr, reference('s1'))],
  ['ip saddr . tcp dport != @s2', is(concat(saddr, dport), reference('s2'), '!=')],
  ['ip saddr vmap @m6', vmap(saddr, reference('m6'))],
  ['ip saddr > 1.1.1.1', is(saddr, '1.1.1.1', '>')],
  ['ip dscp cs1', is(payload('ip', 'dscp'), 'cs1')],
  ['ip dscp { 0x03, cs1 }', is(payload('ip', 'dscp'), set(3, 'cs1'))],
  ['ip dscp set cs3', mangle(payload('ip', 'dscp'), 'cs3')],
  ['ip ecn ce', is(payload('ip', 'ecn'), 'ce')],
  ['ip ecn 0x0-0x1', is(payload('ip', 'ecn'), range('not-ect', 'ect1'))],
  ['ip ttl set 64', mangle(payload('ip', 'ttl'), 64)],
  ['ip frag-off & 8191 != 0', is(binary(payload('ip', 'frag-off'), '&', 8191), 0, '!=')],
  ['ip option lsrr exists', is({ kind: 'ip-option', name: 'lsrr' }, true)],
  ['ip option ra value 1', is({ kind: 'ip-option', name: 'ra', field: 'value' }, 1)],
  ['ip6 saddr fe80::/10', is(payload('ip6', 'saddr'), prefix('fe80::', 10))],
  ['ip6 saddr & ::ffff == ::1', is(binary(payload('ip6', 'saddr'), '&', '::ffff'), '::1')],
  ['ip6 daddr { ::1, fe80::/10 }', is(payload('ip6', 'daddr'), set('::1', prefix('fe80::', 10)))],
  ['ip6 flowlabel 74565', is(payload('ip6', 'flowlabel'), 74565)],
  [
    'ip6 nexthdr tcp exthdr frag exists',
    is(payload('ip6', 'nexthdr'), 'tcp'),
    is({ kind: 'exthdr', name: 'frag' }, true),
  ],
  ['frag more-fragments 1', is({ kind: 'exthdr', name: 'frag', field: 'more-fragments' }, 1)],
  ['hbh nexthdr st', is({ kind: 'exthdr', name: 'hbh', field: 'nexthdr' }, 'st')],
  ['mh type binding-update', is({ kind: 'exthdr', name: 'mh', field: 'type' }, 'binding-update')],
  ['icmp type 0-8', is(payload('icmp', 'type'), range('echo-reply', 'echo-request'))],
  ['icmp type { echo-reply, 99 }', is(payload('icmp', 'type'), set('echo-reply', 99))],
  ['icmp code port-unreachable', is(payload('icmp', 'code'), 'port-unreachable')],
  [
    'icmpv6 type { echo-request, nd-neighbor-solicit }',
    is(payload('icmpv6', 'type'), set('echo-request', 'nd-neighbor-solicit')),
  ],
  ['ether saddr 00:11:22:33:44:55', is(payload('ether', 'saddr'), '00:11:22:33:44:55')],
  ['ether type { 0x0034, ip }', is(payload('ether', 'type'), set(0x34, 'ip'))],
  ['ether type 0x0800-0x0900', is(payload('ether', 'type'), range('ip', 0x900))],
  ['vlan id 5', is(payload('vlan', 'id'), 5)],
  ['@nh,0,8 & 0xf0 == 0x40', is(binary(raw('nh', 0, 8), '&', 0xf0), 0x40)],
  ['@th,16,32 0x50', is(raw('th', 16, 32), 0x50)],
  ['@nh,96,32 { 0x1, 0x1020304 }', is(raw('nh', 96, 32), set(1, 0x1020304))],
]

const transport: readonly Exhibit[] = [
  ['tcp dport { 22, 80-90 }', is(dport, set(22, range(80, 90)))],
  ['tcp dport != 80-90', is(dport, range(80, 90), '!=')],
  ['tcp dport >= 1024', is(dport, 1024, '>=')],
  ['tcp dport { * }', is(dport, set({ kind: 'wildcard' }))],
  ['tcp dport vmap { 80 : accept, 90-100 : drop }', vmap(dport, pairs([80, accept], [range(90, 100), drop]))],
  ['tcp dport vmap { 80 : drop, * : accept }', vmap(dport, pairs([80, drop], [{ kind: 'wildcard' }, accept]))],
  [
    'tcp dport vmap { 80 comment "y" : drop }',
    vmap(dport, { kind: 'set', elements: [{ key: constant(80), comment: 'y', data: drop }] }),
  ],
  ['meta l4proto { tcp, udp } th dport 53', is(meta('l4proto'), set('tcp', 'udp')), is(payload('th', 'dport'), 53)],
  [
    'tcp sport . tcp dport { 80 . 90, 1-2 . 3 }',
    is(
      concat(payload('tcp', 'sport'), dport),
      set(concat(constant(80), constant(90)), concat(range(1, 2), constant(3))),
    ),
  ],
  [
    'ip daddr . tcp dport vmap { 1.1.1.1 . 80 : drop }',
    vmap(concat(daddr, dport), pairs([concat(constant('1.1.1.1'), constant(80)), drop])),
  ],
  ['tcp flags syn', is(flags, 'syn', 'in')],
  ['tcp flags syn,ack', is(flags, list('syn', 'ack'), 'in')],
  ['tcp flags == syn', is(flags, 'syn')],
  ['tcp flags ! syn', is(flags, 'syn', '!')],
  ['tcp flags != 0x0', is(flags, 0, '!=')],
  ['tcp flags syn / fin,syn,rst,ack', is(binary(flags, '&', list('fin', 'syn', 'rst', 'ack')), 'syn')],
  ['tcp flags != syn / syn,ack', is(binary(flags, '&', list('syn', 'ack')), 'syn', '!=')],
  ['tcp flags fin,syn / fin,syn', is(binary(flags, '&', list('fin', 'syn')), list('fin', 'syn'))],
  ['tcp flags & syn == syn', is(binary(flags, '&', 'syn'), 'syn')],
  ['tcp flags vmap { fin | syn : drop }', vmap(flags, pairs([binary(constant('fin'), '|', 'syn'), drop]))],
  ['tcp option sack exists', is({ kind: 'tcp-option', name: 'sack' }, true)],
  ['tcp option maxseg size set 1400', mangle({ kind: 'tcp-option', name: 'maxseg', field: 'size' }, 1400)],
  ['tcp option @255,0,8 5', is({ kind: 'raw-tcp-option', option: 255, offset: 0, length: 8 }, 5)],
  ['reset tcp option maxseg', { kind: 'reset', option: { kind: 'tcp-option', name: 'maxseg' } }],
  ['sctp chunk init exists', is({ kind: 'sctp-chunk', name: 'init' }, true)],
  ['sctp chunk data tsn 5', is({ kind: 'sctp-chunk', name: 'data', field: 'tsn' }, 5)],
  ['dccp type request', is(payload('dccp', 'type'), 'request')],
]

const actions: readonly Exhibit[] = [
  ['accept', accept],
  ['drop', drop],
  ['continue', { kind: 'continue' }],
  ['return', { kind: 'return' }],
  ['jump c2', jump],
  ['goto c2', goTo],
  ['counter packets 1 bytes 2', { kind: 'counter', packets: 1, bytes: 2 }],
  ['jump {\n\t\t\taccept\n\t\t}', { kind: 'block', verdict: 'jump', rules: [{ statements: [accept] }] }],
  ['log', log()],
  ['log prefix "hi " level info flags all', log({ prefix: 'hi ', level: 'info', flags: ['all'] })],
  ['log prefix "a" group 1', log({ prefix: 'a', group: 1 })],
  ['log group 5 snaplen 10 queue-threshold 5', log({ group: 5, snaplen: 10, queueThreshold: 5 })],
  ['log flags tcp sequence,options flags ip options', log({ flags: ['tcp sequence', 'tcp options', 'ip options'] })],
  ['log flags skuid flags ether', log({ flags: ['skuid', 'ether'] })],
  ['limit rate 5/second', limit(5)],
  ['limit rate over 5/second burst 10 packets', limit(5, 10, true)],
  ['limit rate over 10 mbytes/second burst 5 kbytes', byteLimit(10 * 1024 * 1024, 5 * 1024)],
  ['quota over 5 mbytes', quota(5 * 1024 * 1024, 0, true)],
  ['quota 100 bytes used 20 bytes', quota(100, 20)],
  ['counter name "cn"', object('counter', 'cn')],
  ['quota name "q1"', object('quota', 'q1')],
  ['limit name "l1"', object('limit', 'l1')],
  ['counter name tcp dport map @m5', object('counter', map(dport, reference('m5')))],
  ['reject', refuse('icmpx', 'port-unreachable')],
  ['reject with icmpx admin-prohibited', refuse('icmpx', 'admin-prohibited')],
  ['reject with icmp host-unreachable', refuse('icmp', 'host-unreachable')],
  ['reject with icmpv6 no-route', refuse('icmpv6', 'no-route')],
  ['meta l4proto tcp reject with tcp reset', tcpOnly, { kind: 'reject', type: 'tcp reset' }],
  ['add @s3 { ip saddr }', update({ key: saddr }, 'add', 's3')],
  ['update @s9 { ip saddr timeout 1m500ms }', update({ key: saddr, timeoutMilliseconds: 60_500 })],
  ['delete @s9 { ip saddr }', update({ key: saddr }, 'delete')],
  [
    'update @s9 { ip saddr timeout 1m limit rate 5/second counter }',
    update({
      key: saddr,
      timeoutMilliseconds: 60_000,
      statements: [
        { kind: 'limit', isOver: false, rate: 5, unit: 'packets', per: 'second', burst: 5 },
        { kind: 'counter', packets: 0, bytes: 0 },
      ],
    }),
  ],
  [
    'update @m4x { ip saddr timeout 1m : tcp dport }',
    update({ key: saddr, timeoutMilliseconds: 60_000, data: dport }, 'update', 'm4x'),
  ],
  [
    'meter m size 10 { ip saddr limit rate 5/second }',
    {
      kind: 'meter',
      name: 'm',
      size: 10,
      element: {
        key: saddr,
        statements: [{ kind: 'limit', isOver: false, rate: 5, unit: 'packets', per: 'second', burst: 5 }],
      },
    },
  ],
  [
    'synproxy mss 1460 wscale 7 timestamp sack-perm',
    { kind: 'synproxy', mss: 1460, windowScale: 7, flags: ['timestamp', 'sack-perm'] },
  ],
  ['synproxy name "sp"', object('synproxy', 'sp')],
  ['notrack', { kind: 'notrack' }],
]

/** Kernels without this are not rare. */
const queues: readonly Exhibit[] = [
  ['queue flags bypass,fanout to 1-3', { kind: 'queue', number: range(1, 3), flags: ['bypass', 'fanout'] }],
]

const toPort = (port: number | Expression): Partial<Nat> => ({ port: typeof port === 'number' ? constant(port) : port })

const destinations: readonly Exhibit[] = [
  ['dnat ip to 1.1.1.1', nat('dnat', { family: 'ip', address: constant('1.1.1.1') })],
  [
    'meta l4proto tcp dnat ip to 1.1.1.1-1.1.1.9:80-90 random,persistent',
    tcpOnly,
    nat('dnat', {
      family: 'ip',
      address: range('1.1.1.1', '1.1.1.9'),
      ...toPort(range(80, 90)),
      flags: ['random', 'persistent'],
    }),
  ],
  [
    'meta l4proto tcp dnat ip6 to [::1]:80',
    tcpOnly,
    nat('dnat', { family: 'ip6', address: constant('::1'), ...toPort(80) }),
  ],
  [
    'meta l4proto tcp dnat ip6 to [::1]-[::9]:80-90',
    tcpOnly,
    nat('dnat', { family: 'ip6', address: range('::1', '::9'), ...toPort(range(80, 90)) }),
  ],
  ['dnat ip6 to ::1-::9', nat('dnat', { family: 'ip6', address: range('::1', '::9') })],
  ['meta l4proto tcp dnat to :80', tcpOnly, nat('dnat', toPort(80))],
  ['dnat ip to ip saddr map @m1', nat('dnat', { family: 'ip', address: map(saddr, reference('m1')) })],
  [
    'meta l4proto tcp dnat ip to numgen random mod 1 map { 0 : 1.1.1.1 . 80 }',
    tcpOnly,
    nat('dnat', {
      family: 'ip',
      address: map(numgen('random', 1), pairs([0, concat(constant('1.1.1.1'), constant(80))])),
    }),
  ],
  [
    'dnat ip prefix to ip saddr map { 10.0.0.0/24 : 20.0.0.0/24 }',
    nat('dnat', {
      family: 'ip',
      isPrefix: true,
      address: map(saddr, pairs([prefix('10.0.0.0', 24), prefix('20.0.0.0', 24)])),
    }),
  ],
  ['redirect', nat('redirect')],
  ['redirect fully-random', nat('redirect', { flags: ['fully-random'] })],
  [
    'meta l4proto tcp redirect to :8080-8090 random',
    tcpOnly,
    nat('redirect', { ...toPort(range(8080, 8090)), flags: ['random'] }),
  ],
  [
    'tcp dport 80 redirect to :tcp dport map { 80 : 8080, 90 : 9090 }',
    is(dport, 80),
    nat('redirect', toPort(map(dport, pairs([80, 8080], [90, 9090])))),
  ],
]

const sources: readonly Exhibit[] = [
  ['masquerade', nat('masquerade')],
  ['masquerade fully-random,persistent', nat('masquerade', { flags: ['fully-random', 'persistent'] })],
  ['meta l4proto tcp masquerade to :1024-65535', tcpOnly, nat('masquerade', toPort(range(1024, 65535)))],
  ['snat ip to 1.1.1.1-1.1.1.4', nat('snat', { family: 'ip', address: range('1.1.1.1', '1.1.1.4') })],
  ['snat ip to 10.0.0.0/24', nat('snat', { family: 'ip', address: prefix('10.0.0.0', 24) })],
  [
    'snat ip to ip saddr map { 1.1.1.1 : 2.2.2.2-2.2.2.9 }',
    nat('snat', { family: 'ip', address: map(saddr, pairs(['1.1.1.1', range('2.2.2.2', '2.2.2.9')])) }),
  ],
]

const proxies: readonly Exhibit[] = [
  [
    'meta l4proto tcp tproxy ip to 127.0.0.1:80',
    tcpOnly,
    { kind: 'tproxy', family: 'ip', address: constant('127.0.0.1'), port: constant(80) },
  ],
  ['meta l4proto tcp tproxy ip6 to [::1]', tcpOnly, { kind: 'tproxy', family: 'ip6', address: constant('::1') }],
  ['meta l4proto tcp tproxy to :80', tcpOnly, { kind: 'tproxy', port: constant(80) }],
  ['meta pkttype set host', mangle(meta('pkttype'), 'host')],
]

const ofIp: readonly Exhibit[] = [
  ['reject', refuse('icmp', 'port-unreachable')],
  ['reject with icmp host-unreachable', refuse('icmp', 'host-unreachable')],
  ['dup to 1.1.1.1 device "lo"', { kind: 'dup', address: constant('1.1.1.1'), device: constant('lo') }],
]

const ofArp: readonly Exhibit[] = [
  [
    'arp saddr ip 1.1.1.1 arp htype 1 arp ptype ip arp hlen 6 arp plen 4 arp operation request drop',
    is(payload('arp', 'saddr ip'), '1.1.1.1'),
    is(payload('arp', 'htype'), 1),
    is(payload('arp', 'ptype'), 'ip'),
    is(payload('arp', 'hlen'), 6),
    is(payload('arp', 'plen'), 4),
    is(payload('arp', 'operation'), 'request'),
    drop,
  ],
]

const ofNetdev: readonly Exhibit[] = [
  ['fwd to "lo"', { kind: 'fwd', device: constant('lo') }],
  ['dup to "lo"', { kind: 'dup', address: constant('lo') }],
]

export const gallery: readonly Wing[] = [
  { family: 'inet', type: 'filter', hook: 'input', exhibits: [...conntrack, ...links, ...metaData] },
  { family: 'inet', type: 'filter', hook: 'forward', exhibits: [...headers, ...transport, ...actions] },
  { family: 'inet', type: 'filter', hook: 'output', exhibits: queues },
  { family: 'inet', type: 'nat', hook: 'prerouting', exhibits: destinations },
  { family: 'inet', type: 'nat', hook: 'postrouting', exhibits: sources },
  { family: 'inet', type: 'filter', hook: 'prerouting', exhibits: proxies },
  { family: 'ip', type: 'filter', hook: 'input', exhibits: ofIp },
  { family: 'arp', type: 'filter', hook: 'input', exhibits: ofArp },
  { family: 'netdev', type: 'filter', hook: 'ingress', exhibits: ofNetdev },
]
