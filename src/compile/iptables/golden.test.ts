/** The rules of scenario G1, byte for byte: R1 and R2, and the IPv6 fragments. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { buildEndpointSlices } from '#compile/endpointslices/build-endpoint-slices'
import { planServices, proxyNodeOf } from '#compile/services/plan-services'
import { g1, g1ClusterCidr, g1NodeName } from '../../../test/golden/g1'
import { printRestore } from './print-restore'
import { printSave } from './print-save'
import { renderIptables, savedRuleset } from './render-iptables'

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
