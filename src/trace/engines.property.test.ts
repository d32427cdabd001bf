/** iptables and nftables rules of one cluster send every packet to the same place: what differs is in docs/fidelity.md. */
import { expect, test } from 'vitest'
import { type Ip, parseIp } from '#base/ip'
import { parseSave } from '#compile/iptables/parse-save'
import { printSave } from '#compile/iptables/print-save'
import { savedRuleset } from '#compile/iptables/render-iptables'
import { rulesetOf } from '#compile/nftables/ruleset'
import type { ServicePortPlan } from '#compile/services/service-plan'
import type { Trace } from '#model/trace'
import { rulesOfSketch } from '../../test/random/cluster-objects'
import { tableOfSketch } from '../../test/random/nftables-table'
import { nodeAddresses } from '../../test/random/node-layout'
import { seedOfRun } from '../../test/random/random'
import { randomCluster } from '../../test/random/random-cluster'
import { type RulesetTraceInput, traceRuleset } from './trace-ruleset'

const caseCount = 12

function ip(text: string): Ip {
  const parsed = parseIp(text)
  if (parsed === undefined) throw new Error(`bad test address ${text}`)
  return parsed
}

type Destination = Pick<ServicePortPlan, 'port' | 'protocol'> & { readonly address: string }

/** Of an address that stands twice, iptables takes the first rule and nftables its one map element. */
function destinationsOf(ports: readonly ServicePortPlan[]): readonly Destination[] {
  const all = ports.flatMap((one) => {
    const { port, protocol, clusterIP, externalIPs, loadBalancerVIPs } = one
    const addresses = [clusterIP, ...externalIPs, ...loadBalancerVIPs]
    return addresses.map((address) => ({ address, port, protocol, isAlike: isAlike(one, address) }))
  })
  const keyOf = ({ address, port, protocol }: Destination): string => `${address} ${port} ${protocol}`
  const times = new Map<string, number>()
  for (const one of all) times.set(keyOf(one), (times.get(keyOf(one)) ?? 0) + 1)
  return all.filter((one) => one.isAlike && times.get(keyOf(one)) === 1)
}

/** Without endpoints nftables still drops what is outside the source ranges, where iptables rejects all. */
function isAlike({ chosen, loadBalancerSourceRanges, loadBalancerVIPs }: ServicePortPlan, address: string): boolean {
  return chosen.hasAny || loadBalancerSourceRanges.length === 0 || !loadBalancerVIPs.includes(address)
}

/** The engines remember clients under names of their own. */
function plain(condition: string): string {
  return condition.replace(/in (list|set) \S+( of the last \d+ s)?/g, 'remembered')
}

function answerOf(trace: Trace): string {
  const targets = [...trace.targets].map(({ address, share }) => `${address} ${share.toFixed(3)}`).sort()
  return JSON.stringify([
    trace.verdict.kind,
    targets,
    [...new Set(trace.masquerade.map(({ condition }) => plain(condition)))].sort(),
  ])
}

test('both engines give one answer', () => {
  const seed = seedOfRun()
  let count = 0
  for (let at = 0; at < caseCount; at++) {
    const family = at % 2 === 0 ? 'ipv4' : 'ipv6'
    const sketch = randomCluster(seed + at, family)
    const { plan, sync } = rulesOfSketch(sketch)
    const { rulesets } = parseSave(printSave(savedRuleset(sync), { date: 'now' }), 'save')
    const nodeIps = nodeAddresses[family]
    const sources =
      family === 'ipv4'
        ? ['10.244.1.83', '203.0.113.5', '198.51.100.7']
        : ['fd00:10:244:1::83', '2001:db8:100::13', '2001:db8:203::5']
    for (const layout of ['1.31', '1.34', '1.36'] as const) {
      const nft = rulesetOf([tableOfSketch(sketch, layout)])
      for (const { address, port: number, protocol } of destinationsOf(plan.ports)) {
        for (const source of sources) {
          const packet = {
            destination: ip(address),
            destinationPort: number,
            protocol,
            source: ip(source),
          }
          const known: Omit<RulesetTraceInput, 'rulesets'> = { packet, nodeIps, isBrief: true }
          const iptables = answerOf(traceRuleset({ ...known, rulesets }).value)
          const nftables = answerOf(traceRuleset({ ...known, rulesets: [], nft }).value)
          expect(
            nftables,
            `PORTOLAN_SEED=${seed + at}, layout ${layout}: ${source} to ${address}:${number}/${protocol}`,
          ).toBe(iptables)
          count++
        }
      }
    }
  }
  expect(count).toBeGreaterThan(500)
})
