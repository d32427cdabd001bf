/** Listings as they are found: cut, twice, with prompts around them, with iptables in them, of older and newer nft. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { plainRuleset } from '../../../test/saves-nft/plain-ruleset'
import { parseNftList } from './parse-list'
import { printList } from './print-list'
import type { Chain, NamedSet, Table } from './ruleset'

const g1 = readFileSync(new URL('../../../test/golden/nftables-g1.list.txt', import.meta.url), 'utf8')

const simple = `table ip t {
	chain in {
		type filter hook input priority filter; policy drop;
		tcp dport 22 accept
		ip saddr 10.0.0.0/8 counter packets 3 bytes 180 drop comment "ours"
	}
}
`

function read(text: string) {
  return parseNftList(text, 'node.nft')
}

function tableOf(text: string, key = 'ip t'): Table {
  const table = read(text).ruleset.tables.get(key)
  if (table === undefined) throw new Error(`no table ${key}`)
  return table
}

function chainOf(text: string, name = 'in'): Chain {
  const chain = tableOf(text).chains.get(name)
  if (chain === undefined) throw new Error(`no chain ${name}`)
  return chain
}

function setOf(lines: string, family = 'ip'): NamedSet {
  const set = tableOf(`table ${family} t {\n\tset s {\n${lines}\n\t}\n}\n`, `${family} t`).sets.get('s')
  if (set === undefined) throw new Error('no set s')
  return set
}

function codesOf(text: string): string[] {
  return read(text).findings.map(({ code, origin }) => `${code} ${origin?.line ?? '-'}`)
}

describe('what a listing holds', () => {
  test('a table, its chains and their rules, each with its line', () => {
    const { base, rules, line } = chainOf(simple)
    expect(base).toEqual({ type: 'filter', hook: 'input', priority: 0, policy: 'drop', devices: [], flags: [] })
    expect(rules.map(({ line, text, comment }) => ({ line, text, comment }))).toEqual([
      { line: 4, text: 'tcp dport 22 accept', comment: undefined },
      { line: 5, text: 'ip saddr 10.0.0.0/8 counter packets 3 bytes 180 drop comment "ours"', comment: 'ours' },
    ])
    expect({ chain: line, table: tableOf(simple).line, start: read(simple).startLine }).toEqual({
      chain: 2,
      table: 1,
      start: 1,
    })
  })

  test('a listing of kube-proxy prints as it was', () => {
    expect(printList(read(g1).ruleset)).toBe(g1)
    expect(read(g1).findings).toEqual([])
  })

  test('handles behind everything', () => {
    const text = `table ip t { # handle 7
	set s { # handle 3
		type ipv4_addr
	}

	chain in { # handle 1
		tcp dport 22 accept # handle 9
	}
}
`
    const table = tableOf(text)
    const handles = [table, table.sets.get('s'), table.chains.get('in'), table.chains.get('in')?.rules[0]]
    expect(handles.map((one) => one?.handle)).toEqual([7, 3, 1, 9])
    expect(table.chains.get('in')?.rules[0]?.text).toBe('tcp dport 22 accept')
  })

  test('comments and flags of a table', () => {
    const { comment, flags } = tableOf('table ip t {\n\tflags dormant\n\tcomment "it sleeps"\n}\n')
    expect({ comment, flags }).toEqual({ comment: 'it sleeps', flags: ['dormant'] })
  })

  test('a chain with a comment, and one that is empty', () => {
    const text = 'table ip t {\n\tchain a {\n\t\tcomment "x; y"\n\t}\n\n\tchain b {\n\t}\n}\n'
    expect(tableOf(text).chains.get('a')).toMatchObject({ comment: 'x; y', rules: [] })
    expect(tableOf(text).chains.get('b')).toMatchObject({ rules: [] })
  })

  test('objects of every kind', () => {
    const text = `table ip t {
	counter c {
		comment "new"
		packets 3 bytes 4
	}
	quota q {
		over 25 mbytes used 3 kbytes
	}
	limit l {
		rate over 10 kbytes/second burst 2 kbytes
	}
	ct helper h {
		type "ftp" protocol tcp
		l3proto ip
	}
	ct timeout o {
		protocol tcp
		l3proto ip
		policy = { established : 2m, close : 20 }
	}
	ct expectation e {
		protocol tcp
		dport 9876
		timeout 1m
		size 12
		l3proto ip
	}
	synproxy p {
		mss 1460
		wscale 7
		timestamp sack-perm
	}
	secmark s {
		"system_u:object_r:ssh_t:s0"
	}
}
`
    expect(read(text).findings).toEqual([])
    expect(tableOf(text).objects.map(({ line, ...object }) => object)).toEqual([
      { kind: 'counter', name: 'c', comment: 'new', packets: 3, bytes: 4 },
      { kind: 'quota', name: 'q', isOver: true, bytes: 26_214_400, usedBytes: 3072 },
      { kind: 'limit', name: 'l', isOver: true, rate: 10_240, unit: 'bytes', per: 'second', burst: 2048 },
      { kind: 'ct helper', name: 'h', type: 'ftp', protocol: 'tcp', l3protocol: 'ip' },
      {
        kind: 'ct timeout',
        name: 'o',
        protocol: 'tcp',
        l3protocol: 'ip',
        policy: [
          { state: 'established', seconds: 120 },
          { state: 'close', seconds: 20 },
        ],
      },
      {
        kind: 'ct expectation',
        name: 'e',
        protocol: 'tcp',
        l3protocol: 'ip',
        port: 9876,
        timeoutMilliseconds: 60_000,
        size: 12,
      },
      { kind: 'synproxy', name: 'p', mss: 1460, windowScale: 7, flags: ['timestamp', 'sack-perm'] },
      { kind: 'secmark', name: 's', context: 'system_u:object_r:ssh_t:s0' },
    ])
  })

  test('a flowtable with devices, flags and a counter', () => {
    const text =
      'table inet t {\n\tflowtable f {\n\t\thook ingress priority filter + 5\n\t\tdevices = { eth0, "eth1" }\n\t\tflags offload\n\t\tcounter\n\t}\n}\n'
    expect(tableOf(text, 'inet t').flowtables.get('f')).toMatchObject({
      hook: 'ingress',
      priority: 5,
      devices: ['eth0', 'eth1'],
      flags: ['offload'],
      hasCounter: true,
    })
  })
})

describe('priorities', () => {
  const cases: readonly [family: string, hook: string, written: string, priority: number][] = [
    ['ip', 'prerouting', 'dstnat - 10', -110],
    ['ip', 'prerouting', 'dstnat-10', -110],
    ['ip', 'output', '-110', -110],
    ['ip', 'output', 'dstnat', -100],
    ['ip', 'postrouting', 'srcnat + 5', 105],
    ['inet', 'forward', 'mangle', -150],
    ['inet', 'prerouting', 'raw', -300],
    ['ip6', 'input', 'security', 50],
    ['bridge', 'prerouting', 'dstnat', -300],
    ['bridge', 'forward', 'filter', -200],
    ['bridge', 'output', 'out', 100],
    ['arp', 'input', 'filter', 0],
  ]
  test.each(cases)('%s %s %s is %i', (family, hook, written, priority) => {
    const text = `table ${family} t {\n\tchain in {\n\t\ttype filter hook ${hook} priority ${written}; policy accept;\n\t}\n}\n`
    expect(tableOf(text, `${family} t`).chains.get('in')?.base?.priority).toBe(priority)
  })

  test('devices stand before the priority, one or several', () => {
    const chain = (on: string) =>
      `table netdev t {\n\tchain in {\n\t\ttype filter hook ingress ${on} priority -500; policy accept;\n\t}\n}\n`
    const devicesOf = (on: string) => tableOf(chain(on), 'netdev t').chains.get('in')?.base?.devices
    expect(devicesOf('device "eth0"')).toEqual(['eth0'])
    expect(devicesOf('devices = { eth0, "eth1" }')).toEqual(['eth0', 'eth1'])
  })
})

describe('sets', () => {
  test('elements over many lines', () => {
    const set = setOf('\t\ttype ipv4_addr\n\t\telements = { 10.0.0.1, 10.0.0.2,\n\t\t\t     10.0.0.3 }')
    expect(set.elements.map(({ key }) => key)).toEqual(
      ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((value) => ({ kind: 'value', value })),
    )
  })

  test('flags, size, policy, timeouts and what each element gets', () => {
    const set = setOf(`		type ipv4_addr
		policy memory
		size 65535	# count 3
		flags dynamic,timeout
		counter
		auto-merge
		timeout 1d1h1m1s
		gc-interval 10s
		comment "all"`)
    expect(set).toMatchObject({
      policy: 'memory',
      size: 65535,
      flags: ['dynamic', 'timeout'],
      isAutoMerged: true,
      statements: [{ kind: 'counter', packets: 0, bytes: 0 }],
      timeoutMilliseconds: 90_061_000,
      gcIntervalMilliseconds: 10_000,
      comment: 'all',
    })
  })

  test('a timeout is the flag too, which nft does not list beside it', () => {
    expect(setOf('\t\ttype ipv4_addr\n\t\ttimeout 1m').flags).toEqual(['timeout'])
  })

  test('all that an element may carry', () => {
    const { elements } = setOf(
      '\t\ttype ipv4_addr\n\t\telements = { 10.1.2.3 counter packets 1 bytes 2 timeout 1h expires 59m59s992ms comment "x, y" }',
    )
    expect(elements).toEqual([
      {
        key: { kind: 'value', value: '10.1.2.3' },
        statements: [{ kind: 'counter', packets: 1, bytes: 2 }],
        timeoutMilliseconds: 3_600_000,
        expiresMilliseconds: 3_599_992,
        comment: 'x, y',
      },
    ])
  })

  test('a verdict map with comments, and an element for all else', () => {
    const text = `table ip t {
	map m {
		type ipv4_addr . inet_proto . inet_service : verdict
		elements = { 10.96.20.4 . tcp . 6379 comment "shop/cache:redis" : drop,
			     * : goto x }
	}
	chain x {
	}
}
`
    expect(tableOf(text).sets.get('m')).toMatchObject({
      key: { kind: 'type', names: ['ipv4_addr', 'inet_proto', 'inet_service'] },
      data: { kind: 'type', names: ['verdict'] },
      elements: [
        {
          key: { kind: 'concat', parts: [{ value: '10.96.20.4' }, { value: 'tcp' }, { value: 6379 }] },
          comment: 'shop/cache:redis',
          data: { kind: 'drop' },
        },
        { key: { kind: 'wildcard' }, data: { kind: 'goto', target: 'x' } },
      ],
    })
  })

  test('numbers of `-n` are the names they stand for', () => {
    const keyOf = (type: string, value: string) =>
      setOf(`\t\ttype ${type}\n\t\telements = { ${value} }`).elements[0]?.key
    expect(keyOf('inet_proto', '6')).toEqual({ kind: 'value', value: 'tcp' })
    expect(keyOf('ct_state', '0x8')).toEqual({ kind: 'value', value: 'new' })
    expect(keyOf('icmp_type', '8')).toEqual({ kind: 'value', value: 'echo-request' })
    expect(keyOf('inet_service', 'https')).toEqual({ kind: 'value', value: 443 })
    expect(keyOf('mark', '0x00004000')).toEqual({ kind: 'value', value: 16384 })
    expect(keyOf('ether_type', '0x0806')).toEqual({ kind: 'value', value: 'arp' })
  })

  test('ranges, prefixes and names with dashes are told apart', () => {
    const keyOf = (type: string, value: string) =>
      setOf(`\t\ttype ${type}\n\t\telements = { ${value} }`).elements[0]?.key
    expect(keyOf('inet_service', '80-90')).toMatchObject({ kind: 'range', from: { value: 80 }, to: { value: 90 } })
    expect(keyOf('ipv6_addr', 'fd00::1-fd00::9')).toMatchObject({ kind: 'range', from: { value: 'fd00::1' } })
    expect(keyOf('ipv4_addr', '10.0.0.0/8')).toMatchObject({ kind: 'prefix', length: 8 })
    expect(keyOf('icmp_type', 'echo-request')).toEqual({ kind: 'value', value: 'echo-request' })
    expect(keyOf('ifname', '"br-0-1"')).toEqual({ kind: 'value', value: 'br-0-1' })
    expect(keyOf('ifname', '"eth*"')).toEqual({ kind: 'value', value: 'eth*' })
    expect(keyOf('ether_addr', '00:11:22:33:44:55')).toEqual({ kind: 'value', value: '00:11:22:33:44:55' })
  })
})

describe('what stands around a listing', () => {
  test('CRLF, blanks before lines and shell prompts change nothing but what is told of them', () => {
    const text = `root@node-a:~# nft list ruleset\n${g1.replaceAll(/^/gm, '        ')}root@node-a:~# exit\n`.replaceAll(
      '\n',
      '\r\n',
    )
    expect(plainRuleset(read(text).ruleset)).toEqual(plainRuleset(read(g1).ruleset))
    expect(codesOf(text)).toEqual(['nft.foreign-lines 1'])
    expect(read(text).startLine).toBe(2)
  })

  test('a text without indentation is read', () => {
    expect(plainRuleset(read(g1.replaceAll(/^[ \t]+/gm, '')).ruleset)).toEqual(plainRuleset(read(g1).ruleset))
  })

  test('warnings of iptables-nft name its tables', () => {
    const text = `# Warning: table ip t is managed by iptables-nft, do not touch!\n${simple}`
    expect([...read(text).signs]).toEqual(['iptables-nft'])
    expect(read(text).findings[0]).toMatchObject({ code: 'nft.iptables-nft', message: 'iptables-nft wrote table ip t' })
  })

  test('a rule may begin with what nft 0.9 could not translate', () => {
    const text = simple.replace(
      'tcp dport 22 accept',
      '# xt_addrtype counter packets 675 bytes 51804 jump in2\n\t\t# a comment',
    )
    expect(chainOf(text).rules.map((rule) => rule.statements[0]?.kind)).toEqual(['xt', 'match'])
    expect([...read(text).signs]).toEqual(['iptables-nft'])
  })

  test('iptables-save in the same file is left to its own parser', () => {
    const save =
      '# Generated by iptables-save v1.8.9\n*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j ACCEPT\n[1:60] -A INPUT -j DROP\nCOMMIT\n# Completed on Mon\n'
    const parse = read(save + simple + save)
    expect({ start: parse.startLine, findings: parse.findings, signs: [...parse.signs] }).toEqual({
      start: 8,
      findings: [],
      signs: ['iptables-save-text'],
    })
    expect([...parse.ruleset.tables.keys()]).toEqual(['ip t'])
  })

  test('a text with no table gives an empty ruleset and no finding', () => {
    expect(read('hello\n"quote\n*nat\n')).toMatchObject({ findings: [], ruleset: { tables: new Map() } })
  })

  test('JSON is named as such', () => {
    expect([...read('{"nftables": []}').signs]).toEqual(['nft-json'])
  })
})

describe('what is wrong with a listing', () => {
  test('a rule that cannot be read is left out, the rest stays', () => {
    const text = simple.replace('tcp dport 22 accept', 'tcp dport { 22, accept')
    expect(chainOf(text).rules).toHaveLength(1)
    expect(read(text).findings[0]).toMatchObject({
      code: 'nft.bad-rule',
      severity: 'error',
      origin: { file: 'node.nft', line: 4 },
    })
  })

  test.each([
    'tcp dport',
    'ip saddr !=',
    'ip saddr . tcp dport',
    'meta mark set',
    'jump',
    'limit rate many',
    'counter packets x bytes 1',
    'log prefix "open',
    'dnat to',
    'numgen random mod map { 0 : 1.1.1.1 }',
    'meta mark & == 1',
    'ip saddr } drop',
  ])('`%s` is no rule', (rule) => {
    expect(codesOf(`table ip t {\n\tchain in {\n\t\t${rule}\n\t\taccept\n\t}\n}\n`)).toContain('nft.bad-rule 3')
  })

  test('an element that cannot be read is left out', () => {
    const text =
      'table ip t {\n\tset s {\n\t\ttype ipv4_addr\n\t\telements = { 10.0.0.1, 10.0.0.2 timeout soon,\n\t\t\t     10.0.0.3 }\n\t}\n}\n'
    expect(tableOf(text).sets.get('s')?.elements).toHaveLength(2)
    expect(codesOf(text)).toEqual(['nft.bad-element 4'])
  })

  test('a line of a head that cannot be read is left out', () => {
    const text = simple.replace('hook input', 'hook nowhere')
    expect(chainOf(text).rules).toHaveLength(2)
    expect(codesOf(text)).toEqual(['nft.bad-line 3'])
  })

  test('statements of a newer nft stay as they are written, up to the verdict', () => {
    const [rule] = chainOf(
      'table ip t {\n\tchain in {\n\t\tip saddr 10.0.0.1 wonder depth 5 { a, b } counter packets 1 bytes 2 drop\n\t}\n}\n',
    ).rules
    expect(rule?.statements.map(({ kind }) => kind)).toEqual(['match', 'other', 'counter', 'drop'])
    expect(rule?.statements[1]).toEqual({ kind: 'other', syntax: 'text', text: 'wonder depth 5 { a, b }' })
  })

  test('an object of an unknown kind is told and passed over', () => {
    const text = simple.replace('\tchain', '\ttunnel x {\n\t\tid 5\n\t\tvxlan {\n\t\t\tgbp 1\n\t\t}\n\t}\n\n\tchain')
    expect(codesOf(text)).toEqual(['nft.unknown-object 2'])
    expect(chainOf(text).rules).toHaveLength(2)
  })

  test('a table listed twice: the later one counts', () => {
    const text = simple + simple.replace('dport 22', 'dport 23')
    expect(chainOf(text).rules.map((rule) => rule.text)[0]).toBe('tcp dport 23 accept')
    expect(codesOf(text)).toEqual(['nft.table-twice 8'])
  })

  test('two blocks of one table with different chains are one table', () => {
    const text = simple + simple.replace('chain in', 'chain out')
    expect([...tableOf(text).chains.keys()]).toEqual(['in', 'out'])
    expect(codesOf(text)).toEqual([])
  })

  test('chains and sets that are not in the listing are told', () => {
    const text =
      'table ip t {\n\tchain in {\n\t\tjump away\n\t\tip saddr @gone drop\n\t\tip saddr vmap { 10.0.0.1 : goto there }\n\t}\n}\n'
    expect(codesOf(text)).toEqual(['nft.missing-chain 3', 'nft.missing-chain 5', 'nft.missing-set 4'])
  })

  test('a chain that leads back to itself is told, through a map too', () => {
    const text = `table ip t {
	map m {
		type ipv4_addr : verdict
		elements = { 10.0.0.1 : jump b }
	}
	chain a {
		ip saddr vmap @m
	}
	chain b {
		goto a
	}
}
`
    expect(codesOf(text)).toEqual(['nft.loop 10'])
  })
})

describe('a listing that was cut', () => {
  test('the last rule may be half a rule and is left out', () => {
    const text = simple.slice(0, simple.indexOf('counter packets 3') + 12)
    expect(chainOf(text).rules.map((rule) => rule.text)).toEqual(['tcp dport 22 accept'])
    expect(codesOf(text)).toEqual(['nft.cut 5'])
  })

  test('wherever it is cut, all before the cut is read, and nothing else is wrong', () => {
    for (let end = 24; end < g1.length - 2; end += 97) {
      const { findings, ruleset } = read(g1.slice(0, end))
      const codes = findings.map(({ code }) => code).filter((code) => !code.startsWith('nft.missing'))
      expect({ end, codes }).toEqual({ end, codes: ['nft.cut'] })
      const lines = new Set(g1.split('\n').map((line) => line.trim()))
      for (const chain of ruleset.tables.get('ip kube-proxy')?.chains.values() ?? []) {
        for (const rule of chain.rules) expect(lines.has(rule.text ?? '')).toBe(true)
      }
    }
  })

  test('another listing may begin where the first was cut', () => {
    const text = `${simple.slice(0, 40)}\nroot@node-a:~# nft list ruleset\n${simple}`
    expect(chainOf(text).rules).toHaveLength(2)
    expect(codesOf(text)).toContain('nft.cut 5')
  })

  test('a prompt behind a cut is no rule', () => {
    const text = `${simple.slice(0, simple.indexOf('\t\tip saddr'))}root@node-a:~#`
    expect(chainOf(text).rules).toHaveLength(1)
    expect(codesOf(text)).toEqual(['nft.foreign-lines 5', 'nft.cut 5'])
  })
})
