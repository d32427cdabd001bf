/** Settings of kube-proxy: out of its ConfigMap, and what they say about local traffic and node ports. */
import { describe, expect, test } from 'vitest'
import { metaOf } from '../../../test/golden/objects'
import { localTraffic } from './local-traffic'
import { hasIpv4Loopback, nodePortAddresses } from './node-port-addresses'
import { parseProxyConfigMap } from './parse-proxy-config'
import { type DetectLocal, defaultSettings, printMasqueradeMark } from './proxy-settings'

function parse(text: string | undefined) {
  const data: Record<string, string> = text === undefined ? {} : { 'config.conf': text }
  return parseProxyConfigMap({ meta: metaOf('ConfigMap', 'kube-system/kube-proxy'), data })
}

const codesOf = (text: string | undefined): string[] => parse(text).findings.map(({ code }) => code)

describe('parseProxyConfigMap', () => {
  test('a configuration as kubeadm writes it leaves the defaults as they are', () => {
    const { value, findings } = parse(
      [
        'apiVersion: kubeproxy.config.k8s.io/v1alpha1',
        'kind: KubeProxyConfiguration',
        'clusterCIDR: 10.244.0.0/16,fd00:10:244::/56',
        'detectLocalMode: ""',
        'iptables: {localhostNodePorts: null, masqueradeAll: false, masqueradeBit: null}',
        'mode: ""',
        'nodePortAddresses: null',
      ].join('\n'),
    )
    expect(findings).toEqual([])
    expect({ ...defaultSettings, ...value }).toEqual({
      ...defaultSettings,
      detectLocal: { kind: 'ClusterCIDR', cidrs: ['10.244.0.0/16', 'fd00:10:244::/56'] },
    })
  })

  test('reads every setting', () => {
    expect(
      parse(
        [
          'mode: nftables',
          'detectLocalMode: InterfaceNamePrefix',
          'detectLocal: {interfaceNamePrefix: veth}',
          'nftables: {masqueradeAll: true, masqueradeBit: 10}',
          'iptables: {localhostNodePorts: false, masqueradeBit: 3}',
          'conntrack: {tcpBeLiberal: true}',
          'nodePortAddresses: [primary]',
          'featureGates: {PreferSameTrafficDistribution: false}',
        ].join('\n'),
      ).value,
    ).toEqual({
      mode: 'nftables',
      masqueradeAll: true,
      masqueradeBit: 10,
      localhostNodePorts: false,
      conntrackTcpBeLiberal: true,
      nodePortAddresses: ['primary'],
      detectLocal: { kind: 'InterfaceNamePrefix', prefix: 'veth' },
      preferSameTrafficDistribution: false,
    })
  })

  test.each([
    ['no key', undefined, 'proxy-config.missing'],
    ['no YAML', 'a: [', 'proxy-config.unreadable'],
    ['another kind', 'kind: KubeletConfiguration', 'proxy-config.unreadable'],
    ['a list', '- a', 'proxy-config.unreadable'],
    ['an unknown mode', 'mode: ebpf', 'proxy-config.unknown-mode'],
    ['ipvs', 'mode: ipvs', 'proxy-config.other-mode'],
    ['an unknown way to detect', 'detectLocalMode: Magic', 'proxy-config.bad-value'],
    ['a bit out of range', 'iptables: {masqueradeBit: 32}', 'proxy-config.bad-value'],
    ['text for a boolean', 'iptables: {masqueradeAll: "yes"}', 'proxy-config.bad-value'],
    ['a bad CIDR', 'clusterCIDR: 10.244.0.0', 'proxy-config.bad-value'],
    ['a bad address range', 'nodePortAddresses: [x]', 'proxy-config.bad-value'],
    ['a section that is none', 'conntrack: 5', 'proxy-config.bad-value'],
  ])('%s is told', (_, text, code) => {
    expect(codesOf(text)).toEqual([code])
  })
})

describe('localTraffic', () => {
  const of = (detectLocal: DetectLocal, family: 'ipv4' | 'ipv6' = 'ipv4') =>
    localTraffic({ ...defaultSettings, detectLocal }, { family, podCIDRs: ['10.244.1.0/24', 'fd00:1::/64'] })

  test('takes the first range of the family', () => {
    const cidrs = ['fd00::1/56', '10.244.0.1/16', '10.245.0.0/16']
    expect(of({ kind: 'ClusterCIDR', cidrs })).toEqual({ kind: 'source', cidr: '10.244.0.0/16' })
    expect(of({ kind: 'ClusterCIDR', cidrs }, 'ipv6')).toEqual({ kind: 'source', cidr: 'fd00::/56' })
    expect(of({ kind: 'NodeCIDR' }, 'ipv6')).toEqual({ kind: 'source', cidr: 'fd00:1::/64' })
  })

  test('is undefined where there is nothing to go by', () => {
    expect(of({ kind: 'ClusterCIDR', cidrs: ['fd00::/56'] })).toBeUndefined()
    expect(of({ kind: 'BridgeInterface', name: '' })).toBeUndefined()
  })
})

describe('nodePortAddresses', () => {
  const ips = ['192.168.50.11', '10.0.0.5', 'fd00::11']
  const of = (setting: readonly string[], fallback: 'all' | 'primary' = 'all') =>
    nodePortAddresses({ ...defaultSettings, nodePortAddresses: setting }, { family: 'ipv4', ips }, fallback)

  test.each([
    ['nothing set', [], { kind: 'all' }],
    ['only the other family', ['fd00::/8'], { kind: 'all' }],
    ['everything', ['10.0.0.0/8', '0.0.0.0/0'], { kind: 'all' }],
    ['a range', ['192.168.50.0/24'], { kind: 'some', ips: ['192.168.50.11'] }],
    ['two ranges', ['192.168.0.0/16', '10.0.0.0/8'], { kind: 'some', ips: ['10.0.0.5', '192.168.50.11'] }],
    ['loopback', ['127.0.0.0/8'], { kind: 'some', ips: ['127.0.0.1'] }],
    ['primary', ['primary'], { kind: 'some', ips: ['192.168.50.11'] }],
    ['a range that the node is not in', ['172.16.0.0/12'], { kind: 'some', ips: [] }],
  ])('%s', (_, setting, expected) => {
    expect(of(setting)).toEqual(expected)
  })

  test('nothing set means the primary address where that is the default', () => {
    expect(of([], 'primary')).toEqual({ kind: 'some', ips: ['192.168.50.11'] })
  })

  test.each([
    [[], true],
    [['fd00::/8'], true],
    [['64.0.0.0/2'], true],
    [['127.0.2.0/28'], true],
    [['0.0.0.0/0'], true],
    [['192.168.50.0/24'], false],
    [['primary'], false],
  ])('loopback is among %j: %s', (setting, expected) => {
    expect(hasIpv4Loopback({ ...defaultSettings, nodePortAddresses: setting }, { ips })).toBe(expected)
  })
})

test('the mark is written with eight digits', () => {
  expect(printMasqueradeMark(defaultSettings)).toBe('0x00004000')
  expect(printMasqueradeMark({ ...defaultSettings, masqueradeBit: 31 })).toBe('0x80000000')
})
