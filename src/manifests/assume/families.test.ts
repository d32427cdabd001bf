import { describe, expect, test } from 'vitest'
import { buildFrom, type Raw, rawNode, rawPod, rawRunningPod, rawService } from '../support/raw-objects'

/** A bare pod gets an address of each family of the cluster, in order. */
function familiesOf(...objects: readonly Raw[]): string {
  const ips = buildFrom([rawPod('probe'), ...objects]).pod('probe').podIPs
  return ips.map((ip) => (ip.includes(':') ? 6 : 4)).join(' ')
}

const kubernetes = (clusterIP: string): Raw => ({
  ...rawService('kubernetes', { clusterIP }),
  metadata: { name: 'kubernetes', namespace: 'default' },
})

describe('the families of a cluster', () => {
  test.each([
    ['IPv4 when nothing tells', [], '4'],
    ['what Services hold', [rawService('a', { clusterIP: 'fd00::1' })], '6'],
    ['both when one Service holds both', [rawService('a', { clusterIPs: ['10.96.0.1', 'fd00::1'] })], '4 6'],
    [
      'IPv4 first unless the API server says otherwise',
      [rawService('a', { clusterIP: 'fd00::1' }), rawService('b', { clusterIP: '10.96.0.1' })],
      '4 6',
    ],
    ['the family of the API server first', [kubernetes('fd00::1'), rawService('b', { clusterIP: '10.96.0.1' })], '6 4'],
    ['what pods hold', [rawRunningPod('a', 'fd00:10:244:1::5', { nodeName: 'node-a' })], '6'],
    [
      'not what hostNetwork pods hold',
      [rawRunningPod('a', 'fd00:172::5', { nodeName: 'node-a', hostNetwork: true })],
      '4',
    ],
    ['what node ranges hold', [rawNode('node-a', '172.18.0.2', { podCIDR: 'fd00:10:244:1::/64' })], '6'],
    ['the addresses of nodes when nothing else tells', [rawNode('node-a', 'fd00:172:18::2')], '6'],
    ['both when a Service requires both', [rawService('a', { ipFamilyPolicy: 'RequireDualStack' })], '4 6'],
    ['one when a Service would only prefer both', [rawService('a', { ipFamilyPolicy: 'PreferDualStack' })], '4'],
    ['not what a headless Service without selector asks', [rawService('a', { clusterIP: 'None' })], '4'],
  ] as const)('%s', (_, objects, families) => {
    expect(familiesOf(...objects)).toBe(families)
  })
})
