/** Statements in the spellings of nft 0.9 to 1.1, of scripts, and of translated iptables rules: each beside the usual one. */
import { describe, expect, test } from 'vitest'
import { plainRuleset } from '../../../test/saves-nft/plain-ruleset'
import { parseStatements } from './parse-statement'
import { printRule } from './print-statement'
import type { TableFamily } from './ruleset'
import { rulesetOf } from './ruleset'
import type { Statement } from './statement'
import { NftCursor } from './tokenize-nft'

function read(text: string, family: TableFamily = 'inet'): readonly Statement[] {
  const cursor = new NftCursor(text, { family, sets: new Map() })
  const { statements } = parseStatements(cursor)
  expect(cursor.failure).toBeUndefined()
  return statements
}

function plain(text: string, family: TableFamily): unknown {
  const chains = new Map([['c', { name: 'c', rules: [{ statements: read(text, family) }] }]])
  const table = { family, name: 't', flags: [], objects: [], sets: new Map(), flowtables: new Map(), chains }
  return plainRuleset(rulesetOf([table]))
}

/** The first is how nft 1.0.6 lists it. */
const spellings: Readonly<Record<string, readonly (readonly [usual: string, ...others: string[]])[]>> = {
  flags: [
    ['ct state established,related accept', 'ct state 0x2,0x4 accept', 'ct state established, related accept'],
    ['ct state established,related accept', 'ct state & (established | related) != 0 accept'],
    ['ct state != related | new drop', 'ct state != 0x4 | 0x8 drop'],
    ['tcp flags syn accept', 'tcp flags 0x2 accept', 'tcp flags & syn != 0 accept'],
    [
      'tcp flags syn / fin,syn,rst,ack accept',
      'tcp flags & (fin | syn | rst | ack) == syn accept',
      'tcp flags & (fin|syn|rst|ack) == syn accept',
      'tcp flags 0x2 / 0x1,0x2,0x4,0x10 accept',
      'tcp flags & (0x1 | 0x2 | 0x4 | 0x10) == 0x2 accept',
      'tcp flags & 0x17 == 0x2 accept',
    ],
    [
      'tcp flags fin,syn / fin,syn drop',
      'tcp flags & (fin | syn) == fin | syn drop',
      'tcp flags & (fin|syn) == (fin|syn) drop',
    ],
    ['tcp flags != syn / fin,syn drop', 'tcp flags & (fin | syn) != syn drop'],
    ['tcp flags ! fin,syn drop', 'tcp flags & (fin | syn) == 0x0 drop', 'tcp flags & (fin | syn) == 0 drop'],
    ['tcp flags fin,syn drop', 'tcp flags fin | syn drop'],
    ['tcp flags { syn, syn | ack } accept', 'tcp flags { 0x2, 0x2 | 0x10 } accept'],
    ['ct status snat / snat,dnat accept', 'ct status & (snat | dnat) == snat accept'],
  ],
  marks: [
    ['meta mark & 0x00004000 == 0x00000000 return', 'mark and 0x4000 == 0 return', 'meta mark & 16384 == 0 return'],
    ['meta mark set meta mark | 0x00004000', 'mark set mark or 0x4000', 'meta mark set mark or 0x4000'],
    ['meta mark set meta mark ^ 0x00004000', 'mark set mark xor 0x4000'],
    ['meta mark set meta mark & 0xffffff00 ^ 0x00000020', 'meta mark set mark and 0xffffff00 xor 0x20'],
    ['ct mark set meta mark & 0x000000ff', 'ct mark set mark and 0xff'],
    ['ct mark & 0x000000ff == 0x00000001', 'ct mark and 0xff eq 0x1'],
    ['meta mark != 0x00000000 ct mark set meta mark', 'mark != 0x0 ct mark set mark'],
  ],
  names: [
    [
      'meta l4proto { tcp, udp } th dport 53',
      'meta l4proto { 6, 17 } th dport 53',
      'meta l4proto {tcp,udp} th dport domain',
    ],
    ['meta l4proto ipv6-icmp accept', 'meta l4proto icmpv6 accept', 'meta l4proto 58 accept'],
    ['icmp type echo-request accept', 'icmp type 8 accept'],
    ['icmpv6 type mld-listener-done accept', 'icmpv6 type mld-listener-reduction accept', 'icmpv6 type 132 accept'],
    ['ip dscp af11 accept', 'ip dscp 0x0a accept'],
    ['ip ecn ce', 'ip ecn 0x3'],
    ['meta protocol ip6 accept', 'meta protocol 0x86dd accept'],
    ['meta pkttype broadcast drop', 'pkttype broadcast drop', 'meta pkttype 1 drop'],
    ['meta pkttype host', 'meta pkttype unicast'],
    ['meta day { "Monday", "Saturday" }', 'meta day { 1, 6 }', 'meta day {Monday,Saturday}'],
    ['meta nfproto ipv4', 'meta nfproto 2'],
    ['ct direction original', 'ct direction 0'],
    ['fib daddr type local accept', 'fib daddr type 2 accept'],
    ['tcp dport { 22, 443 } accept', 'tcp dport { ssh, https } accept'],
    ['meta skuid 0 accept', 'skuid 0 accept'],
    ['iifname "eth0" oifname != "lo"', 'meta iifname eth0 meta oifname != lo', 'iifname eth0 oifname ne lo'],
    ['meta ibrname "br0"', 'meta ibridgename "br0"', 'ibriport "br0"'],
    ['meta ipsec exists', 'meta secpath exists', 'meta ipsec 1'],
    ['ct l3proto ipv4', 'ct l3protocol 2'],
    ['tcp option sack-perm exists', 'tcp option sack-perm 1'],
    ['exthdr frag missing', 'exthdr frag 0'],
    ['ip ttl < 5 drop', 'ip ttl lt 5 drop'],
    ['fib saddr . iif oif missing drop', 'fib iif . saddr oif missing drop'],
    ['numgen inc mod 3 0', 'numgen inc mod 3 == 0'],
    ['ct expiration 1m30s', 'ct expiration 90s'],
    ['meta priority 1:10', 'meta priority 0x10010'],
    ['ct original proto-dst 53', 'ct original proto-dst 0x35 [invalid type]'],
  ],
  limits: [
    ['limit rate 10/second', 'limit rate 10/second burst 5 packets', 'limit rate 10 / second'],
    ['limit rate over 10 mbytes/second burst 100 kbytes', 'limit rate over 10 mbytes/second burst 102400 bytes'],
    ['quota over 10 mbytes', 'quota over 10240 kbytes'],
    ['quota 10 mbytes', 'quota until 10 mbytes'],
    ['counter packets 0 bytes 0', 'counter'],
    ['ct count over 20'],
    ['last used never', 'last'],
    ['last used 1m30s'],
  ],
  actions: [
    ['reject', 'reject with icmpx port-unreachable', 'reject with icmpx type port-unreachable', 'reject with icmpx 1'],
    ['reject with icmp admin-prohibited', 'reject with icmp type admin-prohibited', 'reject with icmp 13'],
    ['reject with tcp reset'],
    ['queue flags bypass to 3', 'queue num 3 bypass'],
    ['queue flags bypass,fanout to 1-3', 'queue num 1-3 bypass,fanout', 'queue num 1 - 3 bypass,fanout'],
    ['queue to 0', 'queue', 'queue num 0'],
    [
      'log prefix "a b" group 2 snaplen 100',
      'log group 2 prefix "a b" snaplen 100',
      'log prefix \\"a b\\" group 2 snaplen 100',
    ],
    ['log', 'log level warn'],
    ['log flags all', 'log flags tcp sequence,options flags ip options flags skuid flags ether'],
    ['flow add @f', 'flow offload @f'],
    ['update @s { ip saddr timeout 1m }', 'set update ip saddr timeout 1m @s'],
    ['add @s { ip saddr }', 'set add ip saddr @s'],
    ['meter m { ip saddr limit rate 10/second }', 'flow table m { ip saddr limit rate 10/second burst 5 packets }'],
    ['synproxy mss 1460 wscale 7 timestamp sack-perm', 'synproxy mss 1460 wscale 7 sack-perm timestamp'],
    ['xt match recent', 'xt match "recent"'],
    ['counter name "x"', 'counter name x'],
  ],
  nat: [
    ['dnat ip to 10.0.0.1:80', 'dnat ip addr . port to 10.0.0.1:80'],
    ['dnat ip6 to [fd00::5]:8080'],
    ['dnat ip6 to [fd00::1]-[fd00::9]:80-90 random,persistent'],
    [
      'dnat ip to numgen random mod 2 map { 0 : 10.244.0.10 . 9898, 1 : 10.244.0.11 . 9898 }',
      'dnat ip addr . port to numgen random mod 2 map { 0 : 10.244.0.10 . 9898, 1 : 10.244.0.11 . 9898 }',
    ],
    [
      'dnat ip to numgen inc mod 2 map { 0 : 10.0.0.1, 1 : 10.0.0.2 }:90',
      'dnat ip to numgen inc mod 2 map {0:10.0.0.1,1:10.0.0.2} : 90',
    ],
    ['dnat ip prefix to ip daddr map { 10.141.11.0/24 : 192.168.2.0/24 }'],
    ['snat ip to 1.2.3.4-1.2.3.9 fully-random', 'snat ip to 1.2.3.4 - 1.2.3.9 fully-random'],
    ['masquerade to :1024-65535 random'],
    ['redirect to :2222'],
    ['tproxy ip to 1.1.1.1:80'],
    ['tproxy to :80'],
    ['dup to 10.0.0.1 device "eth0"', 'dup to 10.0.0.1 device eth0'],
  ],
  comments: [
    [
      'meta l4proto tcp tcp dport 80 drop',
      'meta l4proto tcp /* shop/web */ tcp dport 80 drop',
      'meta l4proto tcp  tcp dport 80 drop # why',
    ],
  ],
}

describe.each(Object.entries(spellings))('%s', (_, cases) => {
  test.each(cases.flatMap(([usual, ...others]) => [[usual, usual], ...others.map((other) => [other, usual])]))(
    '`%s` is `%s`',
    (...[text = '', usual = '']) => {
      expect(plain(text, 'inet')).toEqual(plain(usual, 'inet'))
      expect(printRule({ statements: read(usual) }, { family: 'inet', indent: '', isScript: false })).toBe(usual)
    },
  )
})

describe('what depends on the family', () => {
  test.each<[TableFamily, string, string]>([
    ['ip', 'reject with icmp port-unreachable', 'reject'],
    ['ip6', 'reject with icmpv6 4', 'reject'],
    ['inet', 'reject with icmp port-unreachable', 'reject with icmp port-unreachable'],
    ['ip', 'ct original saddr 10.0.0.1', 'ct original ip saddr 10.0.0.1'],
    ['ip6', 'ct reply daddr fd00::1', 'ct reply ip6 daddr fd00::1'],
    ['ip', 'rt nexthop 10.0.0.1', 'rt ip nexthop 10.0.0.1'],
    ['netdev', 'dup to "eth1"', 'dup to "eth1"'],
  ])('%s: `%s` is `%s`', (family, text, usual) => {
    expect(printRule({ statements: read(text, family) }, { family, indent: '', isScript: false })).toBe(usual)
  })
})

describe('what nft 0.9 shows of iptables matches that it cannot translate', () => {
  test('stands before the counter and is kept', () => {
    const statements = read('tcp dport 22 # recent: SET name: ssh side: source counter packets 1 bytes 60 accept')
    expect(statements.map(({ kind }) => kind)).toEqual(['match', 'other', 'counter', 'accept'])
    expect(statements[1]).toMatchObject({ text: '# recent: SET name: ssh side: source' })
  })

  test('a target stands behind the counter and ends the rule', () => {
    const statements = read('ip daddr 10.9.0.0/24 counter packets 0 bytes 0 # to:10.244.9.0/24 # handle 5')
    expect(statements.map(({ kind }) => kind)).toEqual(['match', 'counter', 'other'])
    expect(statements[2]).toMatchObject({ text: '# to:10.244.9.0/24' })
  })

  test('without iptables beside it, by name alone', () => {
    expect(read('ip daddr != 127.0.0.0/8 # xt_addrtype counter packets 0 bytes 0 jump DOCKER')).toMatchObject([
      {},
      { kind: 'xt', type: 'match', name: 'addrtype' },
      { kind: 'counter' },
      { kind: 'jump' },
    ])
    expect(read('counter packets 271 bytes 25574 # xt_MASQUERADE')).toMatchObject([
      {},
      { kind: 'xt', type: 'target', name: 'MASQUERADE' },
    ])
  })

  test('a comment may stand in the middle', () => {
    const cursor = new NftCursor('meta l4proto tcp  comment "shop/web" counter packets 0 bytes 0 drop', {
      family: 'ip',
      sets: new Map(),
    })
    expect(parseStatements(cursor)).toMatchObject({
      comment: 'shop/web',
      statements: [{}, { kind: 'counter' }, { kind: 'drop' }],
    })
  })
})

test('rules that stand in a rule', () => {
  const [match, block] = read(
    'ip saddr 10.0.0.0/8 jump {\n\ttcp dport 80 accept comment "x"\n\t# no rule\n\tudp dport 53 goto d; drop\n}',
  )
  expect(match?.kind).toBe('match')
  expect(block).toMatchObject({
    kind: 'block',
    verdict: 'jump',
    rules: [
      { statements: [{ kind: 'match' }, { kind: 'accept' }], comment: 'x' },
      { statements: [{ kind: 'match' }, { kind: 'goto', target: 'd' }] },
      { statements: [{ kind: 'drop' }] },
    ],
  })
})

test('chains may have the names of Services and of iptables', () => {
  const target = 'endpoint-TF6S6XX7-kube-system/kube-dns/udp/dns__fd00.10.244..2/53'
  expect(read(`numgen random mod 1 vmap { 0 : goto ${target} }`)).toMatchObject([
    { kind: 'vmap', data: { elements: [{ data: { kind: 'goto', target } }] } },
  ])
  expect(read('jump weave-:a@b=c')).toEqual([{ kind: 'jump', target: 'weave-:a@b=c' }])
})

test('large numbers are exact', () => {
  expect(read('@th,0,64 0xffffffffffffffff')).toMatchObject([{ right: { value: '0xffffffffffffffff' } }])
  expect(read('@nh,0,128 0x0000000000000000000000000000abcd')).toMatchObject([{ right: { value: 43981 } }])
})
