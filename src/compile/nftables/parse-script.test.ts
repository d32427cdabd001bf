/** Scripts for `nft -f`: Portolan's own, kube-proxy's in the words of knftables, and a person's with variables. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { plainRuleset } from '../../../test/saves-nft/plain-ruleset'
import { parseNftList } from './parse-list'
import { printList } from './print-list'

function golden(name: string): string {
  return readFileSync(new URL(`../../../test/golden/nftables-${name}`, import.meta.url), 'utf8')
}

function read(text: string) {
  return parseNftList(text, 'rules.nft')
}

function codesOf(text: string): string[] {
  return read(text).findings.map(({ code, origin }) => `${code} ${origin?.line ?? '-'}`)
}

function listed(text: string): string {
  const parse = read(text)
  expect(parse.findings).toEqual([])
  return printList(parse.ruleset)
}

test('what Portolan writes as a script is what it lists', () => {
  const parse = read(golden('g1.script.txt'))
  expect(plainRuleset(parse.ruleset)).toEqual(plainRuleset(read(golden('g1.list.txt')).ruleset))
  expect([...parse.signs]).toEqual(['nft-script'])
  expect(parse.findings).toEqual([])
})

test('a transaction of kube-proxy', () => {
  const text = `add table ip kube-proxy { comment "rules for kube-proxy" ; }
add chain ip kube-proxy mark-for-masquerade
flush chain ip kube-proxy mark-for-masquerade
add rule ip kube-proxy mark-for-masquerade mark set mark or 0x4000
add chain ip kube-proxy filter-input { type filter hook input priority 0 ; }
add chain ip kube-proxy reject-chain { comment "helper for @no-endpoint-services / @no-endpoint-nodeports" ; }
add rule ip kube-proxy reject-chain reject
add set ip kube-proxy cluster-ips { type ipv4_addr ; comment "Active ClusterIPs" ; }
add map ip kube-proxy no-endpoint-services { type ipv4_addr . inet_proto . inet_service : verdict ; comment "vmap" ; }
add element ip kube-proxy cluster-ips { 10.96.0.10 }
add element ip kube-proxy no-endpoint-services { 10.96.20.3 . tcp . 80 comment "shop/void" : goto reject-chain }
add set ip kube-proxy affinity-QNZ { type ipv4_addr ; flags dynamic,timeout ; timeout 10800s ; }
add rule ip kube-proxy filter-input ct state new ip daddr . meta l4proto . th dport vmap @no-endpoint-services comment "x"
`
  expect(listed(text)).toBe(`table ip kube-proxy {
	comment "rules for kube-proxy"
	set cluster-ips {
		type ipv4_addr
		comment "Active ClusterIPs"
		elements = { 10.96.0.10 }
	}

	map no-endpoint-services {
		type ipv4_addr . inet_proto . inet_service : verdict
		comment "vmap"
		elements = { 10.96.20.3 . tcp . 80 comment "shop/void" : goto reject-chain }
	}

	set affinity-QNZ {
		type ipv4_addr
		flags dynamic,timeout
		timeout 3h
	}

	chain mark-for-masquerade {
		meta mark set meta mark | 0x00004000
	}

	chain filter-input {
		type filter hook input priority filter;
		ct state new ip daddr . meta l4proto . th dport vmap @no-endpoint-services comment "x"
	}

	chain reject-chain {
		comment "helper for @no-endpoint-services / @no-endpoint-nodeports"
		reject
	}
}
`)
})

describe('commands', () => {
  const start = `add table t
add chain t c
add rule t c tcp dport 1 accept
add rule t c tcp dport 2 accept
add set t s { type ipv4_addr; elements = { 10.0.0.1, 10.0.0.2 }; }
`
  const rulesOf = (more: string) => {
    const parse = read(start + more)
    expect(parse.findings).toEqual([])
    return parse.ruleset.tables
      .get('ip t')
      ?.chains.get('c')
      ?.rules.map((rule) => rule.text)
  }
  const elementsOf = (more: string) =>
    read(start + more)
      .ruleset.tables.get('ip t')
      ?.sets.get('s')
      ?.elements.map(({ key }) => (key.kind === 'value' ? key.value : key.kind))

  test('insert puts a rule first, or before another', () => {
    expect(rulesOf('insert rule t c drop')?.[0]).toBe('drop')
    expect(rulesOf('insert rule t c index 1 drop')?.[1]).toBe('drop')
    expect(rulesOf('add rule t c index 0 drop')?.[1]).toBe('drop')
  })

  test('flush empties a chain, a table’s chains, a set, or all', () => {
    expect(rulesOf('flush chain t c')).toEqual([])
    expect(rulesOf('flush table t')).toEqual([])
    expect(elementsOf('flush set t s')).toEqual([])
    expect(read(`${start}flush ruleset\n`).ruleset.tables.size).toBe(0)
    expect(read(`${start}flush ruleset ip6\n`).ruleset.tables.size).toBe(1)
  })

  test('delete and destroy take away what they name', () => {
    expect(read(`${start}delete table ip t\n`).ruleset.tables.size).toBe(0)
    expect(read(`${start}destroy chain ip t c\n`).ruleset.tables.get('ip t')?.chains.size).toBe(0)
    expect(read(`${start}delete set t s\n`).ruleset.tables.get('ip t')?.sets.size).toBe(0)
    expect(elementsOf('delete element t s { 10.0.0.1 }')).toEqual(['10.0.0.2'])
  })

  test('rename gives a chain another name', () => {
    expect([...(read(`${start}rename chain t c d\n`).ruleset.tables.get('ip t')?.chains.keys() ?? [])]).toEqual(['d'])
  })

  test('objects and flowtables, with braces and without', () => {
    const more = `add counter t k
add quota t q over 25 mbytes
add limit t l { rate 10/second; }
add ct helper t h { type "ftp" protocol tcp ; }
add flowtable t f { hook ingress priority 0; devices = { eth0 }; }
`
    const table = read(start + more).ruleset.tables.get('ip t')
    expect(table?.objects.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      'counter k',
      'quota q',
      'limit l',
      'ct helper h',
    ])
    expect(table?.flowtables.get('f')?.devices).toEqual(['eth0'])
  })

  test('several commands on one line, and one over several', () => {
    expect(
      rulesOf('flush chain t c; add rule t c drop; add rule t c tcp dport {\n\t80,\n\t443 # web\n} \\\n accept\n'),
    ).toEqual(['drop', 'tcp dport {\n\t80,\n\t443 # web\n} \\\n accept'])
  })

  test('a command that cannot be read is told, and the next is read', () => {
    expect(codesOf(`${start}add wonder t w\nadd rule t c drop\n`)).toEqual(['nft.bad-line 6'])
    expect(
      read(`${start}add wonder t w\nadd rule t c drop\n`).ruleset.tables.get('ip t')?.chains.get('c')?.rules,
    ).toHaveLength(3)
  })
})

describe('a configuration file', () => {
  const text = `#!/usr/sbin/nft -f
flush ruleset

define wan = eth0
define lans = { eth1, eth2,
  eth3 } # all of them
define web = { 80, 443 }
define admin = 192.168.50.2

table inet filter {
	chain input {
		type filter hook input priority 0; policy drop;
		iifname $wan tcp dport $web accept # the shop
		iifname $lans ip saddr $admin tcp dport { 22, $web } accept
	}
}

table inet filter {
	chain input {
		ct state established accept
	}
}
`
  test('variables are put in their places', () => {
    const rules = read(text).ruleset.tables.get('inet filter')?.chains.get('input')?.rules ?? []
    expect(rules[0]?.statements).toMatchObject([{ right: { value: 'eth0' } }, { right: { elements: [{}, {}] } }, {}])
    expect(rules[1]?.statements).toMatchObject([
      { right: { elements: [{}, {}, {}] } },
      { right: { value: '192.168.50.2' } },
      { right: { elements: [{ key: { value: 22 } }, { key: { value: 80 } }, { key: { value: 443 } }] } },
      {},
    ])
  })

  test('blocks of one table add up, and lines keep their numbers', () => {
    const parse = read(text)
    expect(parse.findings).toEqual([])
    expect(
      parse.ruleset.tables
        .get('inet filter')
        ?.chains.get('input')
        ?.rules.map(({ line }) => line),
    ).toEqual([13, 14, 20])
  })

  test('a file that is included is told', () => {
    expect(codesOf('include "/etc/nftables.d/*.nft"\ntable ip t {\n}\n')).toEqual(['nft.include 1'])
  })
})
