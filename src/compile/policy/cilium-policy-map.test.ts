/** Policy map entries and their lookup: cases M1 to M9, P39 and P40, and what each version makes of one set of rules. */
import { describe, expect, test } from 'vitest'
import { ciliumVersions } from '#model/cilium-version'
import { askCilium, cnp, exampleWorld, printEntry } from '../../../test/policy/ask-cilium'
import { networkPolicy, type Raw } from '../../../test/policy/policy-objects'
import {
  noAuth,
  type PolicyEntry,
  type PolicyKey,
  policyKeyBytes,
  precedenceOf,
  prefixLength,
} from './cilium-policy-entry'
import { lookUpPolicy, packetKey } from './cilium-policy-lookup'
import { buildPolicyMap } from './cilium-policy-map'
import { portPrefixes } from './cilium-port-prefix'

const hex = (key: PolicyKey): string =>
  [...policyKeyBytes(key)].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')

const key = (identity: number, protocol: number, port: number, length: number): PolicyKey => ({
  direction: 'ingress',
  identity,
  protocol,
  port,
  length,
})

const allow = (at: PolicyKey, more: Partial<PolicyEntry> = {}): PolicyEntry => ({
  key: at,
  isDeny: false,
  auth: noAuth,
  priority: 0,
  origins: [],
  ...more,
})
const deny = (at: PolicyKey, more: Partial<PolicyEntry> = {}): PolicyEntry => allow(at, { isDeny: true, ...more })
const http = { redirect: { parser: 'http', priority: 101 } }

describe('keys', () => {
  test('M1: ingress from 1001 to TCP 8080', () => {
    expect(hex(key(1001, 6, 8080, 24))).toBe('40 00 00 00 e9 03 00 00 00 06 1f 90')
  })

  test('M2: ports 8080 to 8087 are one key of prefix length 61, and lpm_prefix_length 21', () => {
    const [prefix, ...more] = portPrefixes({ from: 8080, to: 8087 })
    expect(more).toEqual([])
    const range = key(1001, 6, prefix?.port ?? 0, 8 + (prefix?.bits ?? 0))
    expect(hex(range)).toBe('3d 00 00 00 e9 03 00 00 00 06 1f 90')
    expect([prefixLength(range), range.length]).toEqual([61, 21])
  })

  test('M3: egress to anyone', () => {
    const all: PolicyKey = { direction: 'egress', identity: 0, protocol: 0, port: 0, length: 0 }
    expect(hex(all)).toBe('28 00 00 00 00 00 00 00 01 00 00 00')
    expect(prefixLength(all)).toBe(40)
  })

  test('M4: ICMP echo request from the world', () => {
    expect(hex(key(2, 1, 8, 24))).toBe('40 00 00 00 02 00 00 00 00 01 00 08')
  })
})

describe('ports', () => {
  const printed = (from: number, to: number): readonly string[] =>
    portPrefixes({ from, to }).map(({ port, bits }) => `${port}/${bits}`)

  test('M5: 8080 to 8090 are three keys', () => {
    expect(printed(8080, 8090)).toEqual(['8080/13', '8088/15', '8090/16'])
  })

  test('M6: 1 to 65535 are 16 keys, 0 to 65535 is every port', () => {
    expect(printed(1, 65535)).toHaveLength(16)
    expect(printed(0, 65535)).toEqual(['0/0'])
    expect(prefixLength(key(0, 6, 0, 8))).toBe(48)
  })

  test.each([
    [20, 25, ['20/14', '24/15']],
    [81, 82, ['81/16', '82/16']],
    [64, 127, ['64/10']],
    [0, 1023, ['0/6']],
    [80, 443, ['80/12', '96/11', '128/9', '256/9', '384/11', '416/12', '432/13', '440/14']],
    [30000, 32767, ['30000/12', '30016/10', '30080/9', '30208/7', '30720/5']],
  ])('the blocks of %i to %i', (from, to, expected) => {
    expect(printed(from, to)).toEqual(expected)
  })

  const server = { endpointSelector: { matchLabels: { app: 'server' } } }
  const portsOf = (ports: readonly Raw[]): readonly string[] => {
    const policy = cnp('business/p', {
      ...server,
      ingress: [{ fromEndpoints: [{ matchLabels: { app: 'client' } }], toPorts: [{ ports }] }],
    })
    return askCilium([...exampleWorld, policy])
      .map('B')
      .filter((line) => line.includes(' 1001 '))
  }

  test('M7: an endPort below the port is the port alone in a CiliumNetworkPolicy, and refused in a NetworkPolicy', () => {
    expect(portsOf([{ port: '8100', endPort: 8090, protocol: 'TCP' }])).toEqual(['Allow Ingress 1001 8100/TCP'])
    const spec = { podSelector: {}, ingress: [{ ports: [{ port: 8100, endPort: 8090 }] }] }
    const { findings } = askCilium([...exampleWorld, networkPolicy('business/p', spec)])
    expect(findings.map(({ code }) => code)).toContain('policy.refused')
  })

  test('M8: a port without protocol is three keys', () => {
    expect(portsOf([{ port: '80' }])).toEqual([
      'Allow Ingress 1001 80/SCTP',
      'Allow Ingress 1001 80/TCP',
      'Allow Ingress 1001 80/UDP',
    ])
  })

  test('M9: two peers and ports 80 to 443 are 16 keys', () => {
    const peers = [{ matchLabels: { app: 'client' } }, { matchLabels: { ver: 'v2' } }]
    const ports = [{ port: '80', endPort: 443, protocol: 'TCP' }]
    const policy = cnp('business/p', { ...server, ingress: [{ fromEndpoints: peers, toPorts: [{ ports }] }] })
    const lines = askCilium([...exampleWorld, policy])
      .map('B')
      .filter((line) => / (1001|1003) /.test(line))
    expect(lines).toHaveLength(16)
  })
})

describe('lookups', () => {
  const packet = packetKey({ direction: 'ingress', identity: 1001, protocol: 6, port: 8080 })

  test('P39: in 1.17 the stronger redirection is chosen before the longer or the own entry', () => {
    const map = buildPolicyMap([allow(key(1001, 0, 0, 0)), allow(key(0, 6, 8080, 24), http)], '1.17')
    expect(lookUpPolicy(map, packet)?.chosen.redirect?.parser).toBe('http')
  })

  test('P40: in 1.19 a better priority wins even over a deny', () => {
    const entries = [deny(key(1001, 6, 8080, 24), { priority: 1 }), allow(key(1001, 6, 8080, 24))]
    const map = buildPolicyMap(entries, '1.19')
    expect(lookUpPolicy(map, packet)?.chosen.isDeny).toBe(false)
    expect(entries.map((entry) => precedenceOf(entry).toString(16))).toEqual(['fffffeff', 'ffffff01'])
    expect(lookUpPolicy(buildPolicyMap(entries, '1.18'), packet)?.chosen.isDeny).toBe(true)
  })

  test('precedence as 1.19 writes it', () => {
    expect(precedenceOf(deny(key(0, 0, 0, 0)))).toBe(0xffffffff)
    expect(precedenceOf(allow(key(0, 6, 80, 24), http))).toBe(0xffffff9a)
    expect(precedenceOf(allow(key(0, 0, 0, 0)))).toBe(0xffffff01)
    expect(precedenceOf(allow(key(0, 0, 0, 0), { priority: 1 }))).toBe(0xfffffe01)
  })

  test('up to 1.16 a deny of a peer is spelled out for each port that is open to everybody', () => {
    const map = buildPolicyMap([deny(key(1001, 0, 0, 0)), allow(key(0, 6, 8080, 24))], '1.16')
    expect(map.entries.map(printEntry).sort()).toEqual([
      'Allow Ingress 0 8080/TCP',
      'Deny Ingress 1001 8080/TCP',
      'Deny Ingress 1001 ANY',
    ])
  })

  test('in 1.16 a range that is allowed to a peer hides a port in it that is denied to everybody', () => {
    const entries = [allow(key(1001, 6, 8080, 21)), deny(key(0, 6, 8080, 24))]
    const denied = ciliumVersions.map(
      (version) => lookUpPolicy(buildPolicyMap(entries, version), packet)?.chosen.isDeny,
    )
    expect(denied).toEqual([false, true, true, true])
  })

  test('an entry for everybody with a longer port is chosen before a peer’s whole entry from 1.17 on', () => {
    const entries = [allow(key(1001, 0, 0, 0)), allow(key(0, 6, 8080, 24))]
    for (const version of ciliumVersions) {
      expect(lookUpPolicy(buildPolicyMap(entries, version), packet)?.chosen.key.identity).toBe(0)
    }
  })

  test('in 1.17 a plain port of a peer hides a redirected range of the same peer, and from 1.18 on it does not', () => {
    const entries = [allow(key(1001, 6, 8080, 24)), allow(key(1001, 6, 8064, 18), http)]
    const parsers = ciliumVersions.map(
      (version) => lookUpPolicy(buildPolicyMap(entries, version), packet)?.chosen.redirect?.parser,
    )
    expect(parsers).toEqual([undefined, undefined, 'http', 'http'])
  })

  test('authentication is inherited from a broader entry of the same peer', () => {
    const whole = allow(key(1001, 0, 0, 0), { auth: { type: 1, isExplicit: true } })
    const port = allow(key(1001, 6, 8080, 24))
    for (const version of ciliumVersions) {
      expect(lookUpPolicy(buildPolicyMap([whole, port], version), packet)?.authType).toBe(1)
    }
  })

  test('a peer that must authenticate must do so at a port that is open to everybody', () => {
    const whole = allow(key(1001, 0, 0, 0), { auth: { type: 1, isExplicit: true } })
    const open = allow(key(0, 6, 8080, 24))
    for (const version of ciliumVersions) {
      expect(lookUpPolicy(buildPolicyMap([whole, open], version), packet)?.authType).toBe(1)
    }
    const other = packetKey({ direction: 'ingress', identity: 1003, protocol: 6, port: 8080 })
    expect(lookUpPolicy(buildPolicyMap([whole, open], '1.18'), other)?.authType).toBe(0)
  })
})
