/** Options of path: what repeats, and values that are told instead of passed over. */

import { expect, test } from 'vitest'
import { runWords } from '../../test/run-words'
import type { Captured } from './capture'

function path(...words: readonly string[]): Promise<Captured> {
  return runWords(['path', '--from', 'samples/cilium', ...words])
}

test('devices of several nodes are given one by one', async () => {
  const devices = ['--device', 'node-gw:eth1=203.0.113.10', '--device', 'node-gw:eth0=192.168.1.20']
  const { code, out } = await path('business/a', '8.8.8.8:443', ...devices)
  expect([code, out.split('\n')[1]]).toEqual([
    0,
    'ALLOWED  it leaves the cluster for 8.8.8.8:443 as 203.0.113.10:43210',
  ])
})

test.each(['cilium', 'iptables', 'nftables'])(
  '%s: a backend that is none of the Service’s is told',
  async (datapath) => {
    const { err } = await path('business/a', 'business/svc/server', '--datapath', datapath, '--backend', '10.9.9.9:80')
    expect(err).toContain('10.244.1.20:8080 and 10.244.2.30:8080')
    expect(err).toContain('[path.backend-unmet]')
    const met = await path('business/a', 'business/svc/server', '--datapath', datapath, '--backend', '10.244.2.30:8080')
    expect(met.err).not.toContain('path.backend-unmet')
  },
)

test.each([
  ['--time', 'garbage'],
  ['--time', '2026-13-02T09:14:05Z'],
  ['--backend', 'garbage'],
  ['--backend', '10.244.1.20'],
  ['--backend', '10.244.1.20:70000'],
])('%s %s is refused', async (option, value) => {
  const { code, err } = await path('business/a', 'business/b:8080', option, value)
  expect(code).toBe(2)
  expect(err).toContain(value)
})

test.each([
  ['--state', 'node-z=/dev/null'],
  ['--device', 'node-z:eth0=192.0.2.1'],
])('%s of a node that the input does not have is refused', async (option, value) => {
  const { code, err } = await path('business/a', 'business/b:8080', option, value)
  expect([code, err]).toEqual([
    2,
    `portolan: no Node is named "node-z": the input has node-a, node-b and node-gw; name one of them with ${option}\n`,
  ])
})

test('a cluster without settings of Cilium: which datapath was taken, and how to choose another', async () => {
  const words = ['path', '--from', 'samples/shop', 'shop/web', 'shop/svc/checkout']
  const { err } = await runWords(words)
  expect(err).toMatch(/where the nodes run kube-proxy, add --datapath iptables or nftables \[maps\.no-config\]/)
  expect((await runWords([...words, '--datapath', 'iptables'])).err).not.toContain('maps.no-config')
})
