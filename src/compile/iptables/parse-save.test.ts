/** Reading rulesets as terminals, tools and people leave them. */
import { expect, test } from 'vitest'
import { parseSave } from './parse-save'
import { commentOf, type Rule, type Ruleset } from './rule'

const save = (body: string): string => `*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
${body}
COMMIT
`

function only(text: string): Ruleset {
  const { rulesets } = parseSave(text, 'node.save')
  expect(rulesets).toHaveLength(1)
  const [first] = rulesets
  if (first === undefined) throw new Error('no ruleset')
  return first
}

function rules(text: string, chain = 'KUBE-SERVICES', table = 'nat'): readonly Rule[] {
  return only(text).tables.get(table)?.chains.get(chain)?.rules ?? []
}

const codes = (text: string): readonly string[] => parseSave(text, 'node.save').findings.map((finding) => finding.code)

test('a rule keeps its clauses in order, its line and its text', () => {
  const line =
    '-A KUBE-SERVICES ! -s 10.0.0.0/8 -d 10.96.0.1/32 -p tcp -m comment --comment "a b" -m tcp --dport 443 -j KUBE-SVC-X'
  const [rule] = rules(save(`:KUBE-SVC-X - [0:0]\n${line}`))
  expect(rule?.clauses).toEqual([
    { kind: 'source', not: true, value: '10.0.0.0/8' },
    { kind: 'destination', not: false, value: '10.96.0.1/32' },
    { kind: 'protocol', not: false, value: 'tcp' },
    { kind: 'match', name: 'comment', options: [{ flag: '--comment', not: false, values: ['a b'] }] },
    { kind: 'match', name: 'tcp', options: [{ flag: '--dport', not: false, values: ['443'] }] },
  ])
  expect(rule?.action).toEqual({ kind: 'jump', target: 'KUBE-SVC-X', options: [] })
  expect(rule?.text).toBe(line)
  expect(rule?.line).toBe(8)
})

test('a rule without a target has no action', () => {
  const [rule] = rules(save('-A KUBE-SERVICES -s 10.0.0.1/32'))
  expect(rule?.action).toBeUndefined()
})

test('a comment with escaped quotes is one argument', () => {
  const [rule] = rules(save('-A KUBE-SERVICES -m comment --comment "dnat name: \\"cbr0\\" id: \\"ab12\\"" -j RETURN'))
  expect(rule && commentOf(rule)).toBe('dnat name: "cbr0" id: "ab12"')
})

test('a comment that looks like an option stays a comment', () => {
  const [rule] = rules(save('-A KUBE-SERVICES -m comment --comment -j -j RETURN'))
  expect(rule && commentOf(rule)).toBe('-j')
  expect(rule?.action?.target).toBe('RETURN')
})

test('counters of rules and chains are read', () => {
  const text = save('[12:720] -A KUBE-SERVICES -j RETURN').replace(':INPUT ACCEPT [0:0]', ':INPUT DROP [18:1080]')
  expect(rules(text)[0]?.counters).toEqual({ packets: 12, bytes: 720 })
  const input = only(text).tables.get('nat')?.chains.get('INPUT')
  expect(input).toMatchObject({ policy: 'DROP', counters: { packets: 18, bytes: 1080 } })
})

test('CRLF, leading blanks and shell prompts change no rule, and the foreign lines are told', () => {
  const clean = save('-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m tcp --dport 443 -j RETURN')
  const dirty = `root@node:~# iptables-save\n${clean}root@node:~# \n`
    .replaceAll('\n', '\r\n')
    .replace(/^/gm, '        ')
  expect(rules(dirty).map((rule) => rule.clauses)).toEqual(rules(clean).map((rule) => rule.clauses))
  expect(codes(dirty)).toEqual(['ruleset.foreign-lines'])
})

test('iptables -S is traced as the table that its built-in chains show', () => {
  const text =
    '-P PREROUTING ACCEPT\n-P INPUT ACCEPT\n-P OUTPUT ACCEPT\n-P POSTROUTING ACCEPT\n-N KUBE-SERVICES\n-A PREROUTING -j KUBE-SERVICES\n'
  expect([...only(text).tables.keys()]).toEqual(['nat'])
  expect(codes(text)).toEqual(['ruleset.table-guessed'])
})

test('restore input reads as the same matches: options after the header belong to the match before it', () => {
  const [rule] = rules(
    save('-A KUBE-SERVICES -m comment --comment x -m tcp -p tcp -d 10.96.0.1 --dport 443 ! -s 10.0.0.0/8 -j RETURN'),
  )
  expect(rule?.clauses.map((clause) => clause.kind)).toEqual(['match', 'match', 'protocol', 'destination', 'source'])
  expect(rule?.clauses[1]).toEqual({
    kind: 'match',
    name: 'tcp',
    options: [{ flag: '--dport', not: false, values: ['443'] }],
  })
})

test('a port without -m loads the match of the protocol', () => {
  const [rule] = rules(save('-A KUBE-SERVICES -p udp --dport 53 -j RETURN'))
  expect(rule?.clauses[1]).toEqual({
    kind: 'match',
    name: 'udp',
    options: [{ flag: '--dport', not: false, values: ['53'] }],
  })
})

test('options with two values and negations keep them', () => {
  const [rule] = rules(
    save(
      '-A KUBE-SERVICES -m set ! --match-set KUBE-CLUSTER-IP dst,dst -p tcp -m tcp ! --tcp-flags SYN,RST SYN -j RETURN',
    ),
  )
  expect(rule?.clauses[0]).toMatchObject({
    options: [{ flag: '--match-set', not: true, values: ['KUBE-CLUSTER-IP', 'dst,dst'] }],
  })
  expect(rule?.clauses[2]).toMatchObject({ options: [{ flag: '--tcp-flags', not: true, values: ['SYN,RST', 'SYN'] }] })
})

test('a dump cut inside a rule drops that rule, keeps the rest and ends its chain in what is not known', () => {
  const whole = save('-A KUBE-SERVICES -s 10.0.0.1/32 -j RETURN\n-A KUBE-SERVICES -s 10.0.0.2/32 -j RETURN')
  const cut = whole.slice(0, whole.indexOf('.2/32') + 5)
  expect(rules(cut).map((rule) => rule.clauses[0])).toMatchObject([{ kind: 'source' }, { name: 'unreadable' }])
  expect(parseSave(cut, 'node.save').findings).toEqual([
    expect.objectContaining({ code: 'ruleset.cut', severity: 'warning', origin: { file: 'node.save', line: 8 } }),
  ])
})

test.each([
  ['-A KUBE-SERVICES -m comment --comment "shop/we', 'a quote is left open'],
  ['-A KUBE-SERVICES -d 10.96.', '"10.96." is not an address'],
  ['-A KUBE-SERVICES -d', 'it ends after "-d"'],
  ['-A KUBE-SERVICES -p tcp -m', 'it ends after "-m"'],
  ['-A KUBE-SERVICES -s 10.0.0.1/32 !', 'it ends after "!"'],
  ['-A KUBE-SERVICES what -j RETURN', '"what" stands where an option should'],
])('half a rule in the middle is of unknown effect, and told with its reason: %s', (line, why) => {
  const { findings } = parseSave(save(line), 'node.save')
  expect(findings).toHaveLength(1)
  expect(findings[0]).toMatchObject({ code: 'ruleset.bad-rule', origin: { file: 'node.save', line: 7 } })
  expect(findings[0]?.message).toContain(why)
})

test('a jump to a chain that is not there is told with its line', () => {
  const { findings } = parseSave(save('-A KUBE-SERVICES -d 10.96.10.1/32 -j KUBE-SVC-GONE'), 'node.save')
  expect(findings[0]?.message).toBe(
    'KUBE-SERVICES refers to a chain that is not in this dump: KUBE-SVC-GONE (table nat)',
  )
  expect(findings[0]?.origin).toEqual({ file: 'node.save', line: 7 })
})

test.each([
  ['itself', '-A KUBE-SERVICES -j KUBE-SERVICES'],
  ['itself through another', ':B - [0:0]\n-A KUBE-SERVICES -j B\n-A B -j KUBE-SERVICES'],
])('a chain that jumps to %s is a loop', (_, body) => {
  expect(codes(save(body))).toEqual(['ruleset.loop'])
})

test('a table that stands twice is told, and the later one is used', () => {
  const twice = save('-A KUBE-SERVICES -s 10.0.0.1/32 -j RETURN') + save('-A KUBE-SERVICES -s 10.0.0.2/32 -j RETURN')
  expect(rules(twice).map((rule) => rule.clauses[0])).toEqual([{ kind: 'source', not: false, value: '10.0.0.2/32' }])
  expect(codes(twice)).toEqual(['ruleset.table-twice'])
})

test('IPv4 and IPv6 rules, and both variants, in one file are rulesets of their own', () => {
  const v4 = `# Generated by iptables-save v1.8.9 (nf_tables) on x\n${save('-A KUBE-SERVICES -d 10.96.0.1/32 -j RETURN')}`
  const legacy = `# Generated by iptables-save v1.8.9 on x\n${save('-A KUBE-SERVICES -d 10.96.0.2/32 -j RETURN')}`
  const v6 = `# Generated by ip6tables-save v1.8.9 (nf_tables) on x\n${save('-A KUBE-SERVICES -d fd00::1/128 -j RETURN')}`
  const { rulesets } = parseSave(v4 + legacy + v6, 'node.save')
  expect(rulesets.map((ruleset) => [ruleset.family, ruleset.variant])).toEqual([
    ['ipv4', 'nf_tables'],
    ['ipv4', 'legacy'],
    ['ipv6', 'nf_tables'],
  ])
})

test('a warning about the other variant and iptables -L output are recognised', () => {
  const warning = '# Warning: iptables-legacy tables present, use iptables-legacy-save to see them\n'
  expect(parseSave(warning, 'x').signs.has('legacy-present')).toBe(true)
  expect(parseSave('Chain INPUT (policy ACCEPT 0 packets, 0 bytes)\n', 'x').signs.has('list-output')).toBe(true)
  expect(parseSave('table ip nat {\n}\n', 'x').signs.has('nft-text')).toBe(true)
})

test('inserted rules come first, or at their number', () => {
  const body =
    '-A KUBE-SERVICES -s 10.0.0.1/32 -j RETURN\n-I KUBE-SERVICES -s 10.0.0.2/32 -j RETURN\n-I KUBE-SERVICES 2 -s 10.0.0.3/32 -j RETURN'
  expect(rules(save(body)).map((rule) => rule.clauses[0]?.kind === 'source' && rule.clauses[0].value)).toEqual([
    '10.0.0.2/32',
    '10.0.0.3/32',
    '10.0.0.1/32',
  ])
})

test('a chain nested deeper than any stack is read', () => {
  const chains = Array.from({ length: 20_000 }, (_, index) => `:C${index} - [0:0]`).join('\n')
  const jumps = Array.from({ length: 19_999 }, (_, index) => `-A C${index} -j C${index + 1}`).join('\n')
  expect(codes(save(`${chains}\n${jumps}`))).toEqual([])
})

test('a table without addresses is of the family that the rest of the text is of', () => {
  const text = '*filter\n:A - [0:0]\n-A A -j DROP\nCOMMIT\n*nat\n:B - [0:0]\n-A B -d fd00::1/128 -j RETURN\nCOMMIT\n'
  expect(parseSave(text, 'x').rulesets.map((ruleset) => ruleset.family)).toEqual(['ipv6'])
})

test.each([
  ['-A KUBE-SERVICES -p tcp -m tcp --dpo 80 -j DROP', '-m tcp has no option --dpo'],
  ['-A KUBE-SERVICES -p tcp -m tcp --dport abc -j DROP', '"abc" is not a port'],
  ['-A KUBE-SERVICES -s 300.1.1.1/32 -j DROP', '"300.1.1.1/32" is not an address'],
  ['-A KUBE-SERVICES -p nosuch -j DROP', '"nosuch" is not a protocol'],
])('a rule that no kernel would take is told, and nothing decides whether it matches: %s', (line, why) => {
  const { findings } = parseSave(save(line), 'node.save')
  expect(findings).toMatchObject([{ code: 'ruleset.bad-rule', origin: { line: 7 } }])
  expect(findings[0]?.message).toContain(why)
  expect(rules(save(line))[0]?.clauses.at(-1)).toMatchObject({ kind: 'match', name: 'unreadable' })
})

test('chains behind the cut, and those the dump never came to, end in what is not known', () => {
  const text =
    '*filter\n:INPUT ACCEPT [0:0]\n:A - [0:0]\n:B - [0:0]\n:C - [0:0]\n-A INPUT -j A\n-A A -j B\n-A B -j RETURN\n'
  const lengths = ['INPUT', 'A', 'B', 'C', 'FORWARD'].map((chain) => rules(text, chain, 'filter').length)
  expect(lengths).toEqual([1, 1, 2, 1, 1])
  expect(parseSave(text, 'x').findings[0]?.origin?.line).toBe(8)
})

test('two listings of iptables -S, one after the other, are two tables; counters inside rules are read', () => {
  const text = [
    '-P INPUT ACCEPT -c 3 180',
    '-P FORWARD ACCEPT',
    '-P OUTPUT ACCEPT',
    '-P PREROUTING ACCEPT',
    '-P INPUT ACCEPT',
    '-P OUTPUT ACCEPT',
    '-P POSTROUTING ACCEPT',
    '-N A',
    '-A PREROUTING -c 12 720 -j A',
    '-P INPUT DROP',
  ].join('\n')
  const { rulesets } = parseSave(text, 'x')
  expect([...(rulesets[0]?.tables.keys() ?? [])]).toEqual(['filter', 'nat'])
  expect(rulesets[0]?.tables.get('nat')?.chains.get('PREROUTING')?.rules[0]?.counters).toEqual({
    packets: 12,
    bytes: 720,
  })
})

test.each([
  ['-D KUBE-SERVICES 2', ['1', '3']],
  ['-D KUBE-SERVICES -s 10.0.0.2 -j RETURN', ['1', '3']],
  ['-R KUBE-SERVICES 2 -s 10.0.0.9/32 -j RETURN', ['1', '9', '3']],
  ['-F KUBE-SERVICES', []],
  ['-F', []],
])('a script that says %s leaves what it should', (line, left) => {
  const three = [1, 2, 3].map((one) => `-A KUBE-SERVICES -s 10.0.0.${one}/32 -j RETURN`).join('\n')
  const text = save(`${three}\n${line}`)
  expect(codes(text)).toEqual([])
  expect(rules(text).map((rule) => /0\.(\d)\/32/.exec(rule.text ?? '')?.[1])).toEqual(left)
})

test.each([
  '-D KUBE-SERVICES 4',
  '-D KUBE-SERVICES -s 10.0.0.8/32',
  '-R KUBE-SERVICES 2 -j DROP',
  '-I KUBE-SERVICES 7 -j DROP',
  '-F GONE',
  '-X GONE',
])('a script that says %s where there is nothing of the kind is told', (line) => {
  const findings = parseSave(save(`-A KUBE-SERVICES -s 10.0.0.1/32 -j RETURN\n${line}`), 'x').findings
  expect(findings).toMatchObject([{ code: 'ruleset.not-applied', severity: 'error', origin: { line: 8 } }])
})

test.each([
  ['KUBE-SERVICES -s 10.0.0.2/32 -j DROP', 'a line whose beginning is lost'],
  ['--dport 80 -j DROP', 'the second half of a line that was broken in two'],
])('%s is a rule of unknown effect: %s', (line) => {
  const text = save(`-A KUBE-SERVICES -s 10.0.0.1/32 -j RETURN\n${line}`)
  expect(parseSave(text, 'x').findings).toMatchObject([{ code: 'ruleset.bad-rule', origin: { line: 8 } }])
  expect(rules(text).map((rule) => rule.clauses[0])).toMatchObject([{ kind: 'source' }, { name: 'unreadable' }])
})

test('a chain whose policy cannot be read ends in what is not known', () => {
  const text = save('').replace(':INPUT ACCEPT [0:0]', ':INPUT DRO [0:0]')
  expect(codes(text)).toEqual(['ruleset.bad-line'])
  expect(rules(text, 'INPUT')[0]?.clauses).toMatchObject([{ name: 'unreadable' }])
})
