/** The rules of scenario G1, byte for byte: R1 and R2, and IPv6. Each save was made by iptables 1.8.9 from the restore text. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { buildEndpointSlices } from '#compile/endpointslices/build-endpoint-slices'
import { planServices, proxyNodeOf } from '#compile/services/plan-services'
import { parseCluster } from '#manifests/parse-cluster'
import { g1, g1ClusterCidr, g1NodeName } from '../../../test/golden/g1'
import { clusterOf, endpointOf, portOf, serviceOf, sliceOf, slicePortOf } from '../../../test/golden/objects'
import { printRestore } from './print-restore'
import { printSave } from './print-save'
import { fullTables, renderIptables, savedRuleset } from './render-iptables'

function golden(name: string): string {
  return readFileSync(new URL(`../../../test/golden/${name}`, import.meta.url), 'utf8')
}

const slices = buildEndpointSlices(g1).value
const plan = planServices(g1, slices, {
  family: 'ipv4',
  node: proxyNodeOf(g1, g1NodeName),
  settings: { detectLocal: { kind: 'ClusterCIDR', cidrs: [g1ClusterCidr] } },
})

test('R1: what kube-proxy feeds iptables-restore', () => {
  expect(printRestore(renderIptables(plan.value).tables)).toBe(golden('g1.restore.txt'))
})

test('R2: what iptables-save prints afterwards', () => {
  const saved = savedRuleset(renderIptables(plan.value))
  expect(printSave(saved, { date: '<date>' })).toBe(golden('g1.save.txt'))
})

test('R2: the legacy variant lists tables in another order and names itself less', () => {
  const saved = savedRuleset(renderIptables(plan.value), 'legacy')
  expect(printSave(saved, { date: '<date>' })).toBe(golden('g1.save-legacy.txt'))
})

test('R1: the same from the manifests of the scenario', () => {
  const cluster = parseCluster(golden('g1.yaml')).value
  const { value } = planServices(cluster, buildEndpointSlices(cluster).value, {
    family: 'ipv4',
    node: proxyNodeOf(cluster, g1NodeName),
    settings: { detectLocal: { kind: 'ClusterCIDR', cidrs: [g1ClusterCidr] } },
  })
  expect(printRestore(renderIptables(value).tables)).toBe(golden('g1.restore.txt'))
})

test('what an empty namespace loads for the same state', () => {
  expect(printRestore(fullTables(renderIptables(plan.value)))).toBe(golden('g1.restore-full.txt'))
})

describe('IPv6', () => {
  const services = [
    serviceOf('shop/web', {
      type: 'NodePort',
      clusterIPs: ['fd00:10:96::a01'],
      affinitySeconds: 10800,
      ports: [portOf(80, { targetPort: 8080, nodePort: 31081 })],
    }),
    serviceOf('shop/void', { clusterIPs: ['fd00:10:96::a03'], ports: [portOf(80)] }),
  ]
  const slice = sliceOf('shop/web-1', 'web', {
    addressType: 'IPv6',
    ports: [slicePortOf(8080)],
    endpoints: [
      endpointOf('fd00:10:244:1::9', { nodeName: 'node-a' }),
      endpointOf('fd00:10:244:2::3', { nodeName: 'node-b' }),
    ],
  })
  const sync = renderIptables(
    planServices(clusterOf({ services }), [slice], {
      family: 'ipv6',
      node: { name: 'node-a', ips: ['fd00:192:168:50::11'], labels: {}, podCIDRs: [] },
      settings: { detectLocal: { kind: 'ClusterCIDR', cidrs: ['fd00:10:244::/56'] } },
    }).value,
  )
  const save = printSave(savedRuleset(sync), { date: '<date>' })

  test('the fragments are there line by line', () => {
    const lines = save.split('\n')
    for (const line of golden('g1-ipv6.save-lines.txt').trimEnd().split('\n')) expect(lines).toContain(line)
  })

  test('the whole, as ip6tables saves it', () => {
    expect(save).toBe(golden('g1-ipv6.save.txt'))
  })
})
