/** Connection tracking tables as conntrack and the kernel print them. */
import { expect, test } from 'vitest'
import { parseConntrack } from './parse-conntrack'

const line =
  'tcp      6 431999 ESTABLISHED src=10.244.1.30 dst=10.96.0.20 sport=51234 dport=80 src=10.244.1.5 dst=10.244.1.30 sport=8080 dport=51234 [ASSURED] mark=0 use=1'

test('an entry has what was sent and who answers', () => {
  expect(parseConntrack(`${line}\n`, 'x').entries).toEqual([
    {
      protocol: 'tcp',
      state: 'ESTABLISHED',
      original: { source: '10.244.1.30', destination: '10.96.0.20', sourcePort: 51234, destinationPort: 80 },
      reply: { source: '10.244.1.5', destination: '10.244.1.30', sourcePort: 8080, destinationPort: 51234 },
      isUnreplied: false,
      line: 1,
      text: line,
    },
  ])
})

test.each([
  ['with the layer 3 protocol, as -o extended and the kernel print it', `ipv4     2 ${line}`],
  ['with counters', line.replace('dport=80 ', 'dport=80 packets=4 bytes=216 ')],
  ['an event with its time', `[1690000000.123456]\t    [NEW] ${line}`],
  ['behind spaces, from a terminal', `   ${line}\r`],
  ['offloaded', line.replace('[ASSURED]', '[OFFLOAD]')],
])('an entry is read %s', (_, text) => {
  const { entries, findings } = parseConntrack(text, 'x')
  expect(findings).toEqual([])
  expect(entries[0]?.reply).toMatchObject({ source: '10.244.1.5', sourcePort: 8080 })
})

test('an answer that never came is marked, and UDP has no state', () => {
  const text =
    'udp 17 29 src=10.0.0.1 dst=10.96.0.10 sport=4 dport=53 [UNREPLIED] src=10.244.1.9 dst=10.0.0.1 sport=53 dport=4 use=1'
  const [entry] = parseConntrack(text, 'x').entries
  expect(entry).toMatchObject({ protocol: 'udp', isUnreplied: true })
  expect(entry).not.toHaveProperty('state')
})

test('IPv6 addresses are canonical, and ICMP has no ports', () => {
  const text =
    'icmpv6 58 29 src=FD00:0:0::1 dst=fd00::2 type=128 code=0 id=1 src=fd00::2 dst=fd00::1 type=129 code=0 id=1 use=1'
  expect(parseConntrack(text, 'x').entries[0]?.original).toEqual({
    source: 'fd00::1',
    destination: 'fd00::2',
    icmp: { type: 128, code: 0, id: 1 },
  })
})

test('what stands around the entries is passed over, and a removal is none', () => {
  const text = `$ conntrack -L\n\n[DESTROY] ${line}\nconntrack v1.4.7 (conntrack-tools): 1 flow entries have been shown.\n`
  expect(parseConntrack(text, 'x')).toEqual({ file: 'x', entries: [], findings: [] })
})

test('lines that are none are counted in one finding', () => {
  const { entries, findings } = parseConntrack(`tcp 6 src=bad\n${line}\nwhat\n`, 'table.txt')
  expect(entries).toHaveLength(1)
  expect(findings).toMatchObject([
    {
      code: 'explain.conntrack-bad-line',
      origin: { file: 'table.txt', line: 1 },
      message: '2 lines that are no tracked connection left out, the first in line 1',
    },
  ])
})

test('no text makes it throw', () => {
  for (const text of [
    '',
    '\u0000',
    'src= dst=',
    'tcp 6 src=1.2.3.4 dst=1.2.3.4 src=1.2.3.4',
    '<?xml version="1.0"?>',
  ]) {
    expect(parseConntrack(text, 'x').entries).toEqual([])
  }
})
