import { describe, expect, test } from 'vitest'
import type { PodDnsConfig } from '#model/pod'
import { formResolvConf, type KubeletDns, type PodDns } from './form-resolv-conf'
import { parseNodeResolvConf, printResolvConf, type ResolvConf } from './resolv-conf'

const node: ResolvConf = { nameservers: ['192.0.2.53'], searches: ['corp.example'], options: ['timeout:1'] }
const kubelet: KubeletDns = { clusterDns: ['10.96.0.10'], clusterDomain: 'cluster.local', nodeResolvConf: node }
const pod: PodDns = { namespace: 'shop', dnsPolicy: 'ClusterFirst', hostNetwork: false }
const cluster = {
  nameservers: ['10.96.0.10'],
  searches: ['shop.svc.cluster.local', 'svc.cluster.local', 'cluster.local', 'corp.example'],
  options: ['ndots:5'],
}
const config = (parts: Partial<PodDnsConfig>): PodDnsConfig => ({
  nameservers: [],
  searches: [],
  options: [],
  ...parts,
})

const form = (of: Partial<PodDns> = {}, by: Partial<KubeletDns> = {}) =>
  formResolvConf({ ...pod, ...of }, { ...kubelet, ...by })
const confOf = (of: Partial<PodDns> = {}, by: Partial<KubeletDns> = {}): ResolvConf => form(of, by).value.conf

describe('dnsPolicy', () => {
  test.each([
    ['ClusterFirst', false, cluster],
    ['ClusterFirst', true, node],
    ['ClusterFirstWithHostNet', true, cluster],
    ['Default', false, node],
    ['None', false, { nameservers: [], searches: [], options: [] }],
  ])('%s, on the host’s network: %s', (dnsPolicy, hostNetwork, conf) => {
    expect(confOf({ dnsPolicy, hostNetwork })).toEqual(conf)
  })

  test('None without a nameserver is told', () => {
    const codes = (dnsConfig?: PodDnsConfig) =>
      form({ dnsPolicy: 'None', ...(dnsConfig !== undefined && { dnsConfig }) }).findings.map(({ code }) => code)
    expect(codes()).toEqual(['dns.no-nameserver'])
    expect(codes(config({ searches: ['corp.example'] }))).toEqual(['dns.no-nameserver'])
    expect(codes(config({ nameservers: ['192.0.2.53'] }))).toEqual([])
  })

  test('a policy that nobody knows is ClusterFirst, and told', () => {
    const { value, findings } = form({ dnsPolicy: 'Fancy' })
    expect([value.conf, findings.map(({ code }) => code)]).toEqual([cluster, ['dns.bad-policy']])
  })

  test('without a cluster DNS ClusterFirst is Default, and told', () => {
    const { value, findings } = form({}, { clusterDns: [] })
    expect([value, findings.map(({ code }) => code)]).toEqual([
      { conf: node, source: 'node' },
      ['dns.missing-cluster-dns'],
    ])
  })

  test('a kubelet without a file for nodes gives this machine and a root to search', () => {
    const none = { nodeResolvConf: 'none' } as const
    expect(confOf({ dnsPolicy: 'Default' }, none)).toEqual({ nameservers: ['127.0.0.1'], searches: ['.'], options: [] })
    expect(confOf({ dnsPolicy: 'Default' }, { ...none, nodeIps: ['fd00::1', '10.0.0.1'] }).nameservers).toEqual([
      '::1',
      '127.0.0.1',
    ])
  })

  test('a search domain that the node has too stands once', () => {
    expect(confOf({}, { nodeResolvConf: { ...node, searches: ['cluster.local', 'corp.example'] } }).searches).toEqual(
      cluster.searches,
    )
  })
})

describe('dnsConfig', () => {
  test('nameservers and searches are added once, options take the place of those of the same name', () => {
    const dnsConfig = config({
      nameservers: ['10.96.0.10', '192.0.2.1'],
      searches: ['my.example', 'cluster.local'],
      options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }],
    })
    expect(confOf({ dnsConfig })).toEqual({
      nameservers: ['10.96.0.10', '192.0.2.1'],
      searches: [...cluster.searches, 'my.example'],
      options: ['ndots:2', 'edns0'],
    })
  })

  test('L17: ndots:2 replaces 5', () => {
    expect(confOf({ dnsConfig: config({ options: [{ name: 'ndots', value: '2' }] }) }).options).toEqual(['ndots:2'])
  })

  test('policy None has nothing but dnsConfig', () => {
    const dnsConfig = config({ nameservers: ['192.0.2.1'], searches: ['a.example'] })
    expect(confOf({ dnsPolicy: 'None', dnsConfig })).toEqual({
      nameservers: ['192.0.2.1'],
      searches: ['a.example'],
      options: [],
    })
  })
})

describe('limits', () => {
  test('L16: of 40 search domains the first 32 stay, with the kubelet’s words', () => {
    const searches = Array.from({ length: 40 }, (_, index) => `d${index}.example`)
    const { value, findings } = form({ dnsConfig: config({ searches }) })
    expect(value.conf.searches).toEqual([...cluster.searches, ...searches].slice(0, 32))
    expect(findings[0]?.message).toBe(
      `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${value.conf.searches.join(' ')}`,
    )
  })

  test('domains of more than 253 characters go, then what is more than 2048 in all', () => {
    const long = `${'a'.repeat(250)}.example`
    const searches = Array.from({ length: 20 }, (_, index) => `${'b'.repeat(120)}${index}.example`)
    const { conf } = form({ dnsConfig: config({ searches: [long, ...searches] }) }).value
    expect(conf.searches).not.toContain(long)
    const length = conf.searches.join(' ').length
    expect(length <= 2048 && length + 131 > 2048).toBe(true)
  })

  test('the first three nameservers stay', () => {
    const nameservers = ['10.0.0.1', '10.0.0.2', '10.0.0.3']
    const { value, findings } = form({ dnsConfig: config({ nameservers }) })
    expect(value.conf.nameservers).toEqual(['10.96.0.10', '10.0.0.1', '10.0.0.2'])
    expect(findings.map(({ code }) => code)).toEqual(['dns.nameserver-limits'])
  })
})

describe('the node’s file', () => {
  test('is read as the kubelet reads it', () => {
    const text =
      '# nameserver 9.9.9.9\nnameserver 192.0.2.53 # ours\nsearch old.example\nsearch corp.example. lab.example .\noptions timeout:1 rotate\noptions timeout:3\n'
    expect(parseNodeResolvConf(text, 'resolv.conf').value).toEqual({
      nameservers: ['192.0.2.53'],
      searches: ['corp.example', 'lab.example', '.'],
      options: ['timeout:3', 'rotate'],
    })
  })

  test('a nameserver line without an address is what the kubelet refuses', () => {
    expect(parseNodeResolvConf('nameserver\n', 'resolv.conf').findings).toMatchObject([
      { code: 'dns.node-resolv-conf', origin: { file: 'resolv.conf', line: 1 } },
    ])
  })

  test('printed and read again it is the same', () => {
    expect(parseNodeResolvConf(printResolvConf(cluster), 'x').value).toEqual(cluster)
    expect(printResolvConf({ nameservers: [], searches: [], options: [] })).toBe('')
  })
})
