/** What holds for the rules of any plan: no jump leads nowhere, shares are even, and both families look alike. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Family } from '#base/ip'
import { planServices } from '#compile/services/plan-services'
import type { ProxyNode } from '#compile/services/service-plan'
import { clusterOf, endpointOf, portOf, serviceOf, sliceOf, slicePortOf } from '../../../test/golden/objects'
import { normalizeRuleset } from './normalize-rule'
import { parseSave } from './parse-save'
import { printRestore } from './print-restore'
import { printSave } from './print-save'
import { fullTables, type IptablesSync, renderIptables, savedRuleset } from './render-iptables'
import { optionOf, type Rule, type Ruleset } from './rule'
import { isKnownTarget } from './targets'

const runs = { seed: 20260102, numRuns: 100 }

const readiness = fc.constantFrom(
  { ready: true, serving: true, terminating: false },
  { ready: false, serving: true, terminating: true },
  { ready: false, serving: false, terminating: false },
)

const endpointArbitrary = fc.record({
  host: fc.integer({ min: 1, max: 40 }),
  nodeName: fc.constantFrom('node-a', 'node-b'),
  conditions: readiness,
  zone: fc.constantFrom('a', 'b', undefined),
})

const serviceArbitrary = fc.record({
  type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer'),
  isExternalLocal: fc.boolean(),
  isInternalLocal: fc.boolean(),
  hasExternalIp: fc.boolean(),
  hasVip: fc.boolean(),
  hasRanges: fc.boolean(),
  affinitySeconds: fc.constantFrom(undefined, 600),
  portNames: fc.constantFrom([''], ['http', 'dns']),
  endpoints: fc.array(endpointArbitrary, { maxLength: 12 }),
})

const settingsArbitrary = fc.record({
  masqueradeAll: fc.boolean(),
  localhostNodePorts: fc.boolean(),
  nfacct: fc.boolean(),
  conntrackTcpBeLiberal: fc.boolean(),
  largeClusterEndpoints: fc.constantFrom(3, 1000),
  hasDetector: fc.boolean(),
})

type ServiceTraits = typeof serviceArbitrary extends fc.Arbitrary<infer T> ? T : never
type SettingsTraits = typeof settingsArbitrary extends fc.Arbitrary<infer T> ? T : never

const planArbitrary = fc.tuple(fc.array(serviceArbitrary, { maxLength: 6 }), settingsArbitrary)

/** The same text in both families, and in the same order. */
const addressIn: Readonly<Record<Family, (group: number, host: number) => string>> = {
  ipv4: (group, host) => `10.${group}.0.${host + 100}`,
  ipv6: (group, host) => `fd00:${group}::${host + 100}`,
}

function render(services: readonly ServiceTraits[], traits: SettingsTraits, family: Family): IptablesSync {
  const address = addressIn[family]
  const all = services.map((service, at) => serviceFrom(service, at, address))
  const cluster = clusterOf({ services: all.map(({ service }) => service) })
  const { hasDetector, ...settings } = traits
  const node: ProxyNode = {
    name: 'node-a',
    ips: [address(9, 1)],
    labels: { 'topology.kubernetes.io/zone': 'a' },
    podCIDRs: [],
  }
  const cidrs = hasDetector ? [family === 'ipv4' ? '10.1.0.0/16' : 'fd00:1::/32'] : []
  const options = { family, node, settings: { ...settings, detectLocal: { kind: 'ClusterCIDR', cidrs } as const } }
  const slices = all
    .flatMap(({ slice }) => slice)
    .map((slice) => ({ ...slice, addressType: family === 'ipv4' ? 'IPv4' : 'IPv6' }) as const)
  return renderIptables(planServices(cluster, slices, options).value)
}

function serviceFrom(traits: ServiceTraits, at: number, address: (group: number, host: number) => string) {
  const isOpen = traits.type !== 'ClusterIP'
  const ports = traits.portNames.map((name, port) =>
    portOf(80 + port, { name, nodePort: isOpen ? 30000 + at * 10 + port : 0 }),
  )
  const service = serviceOf(`shop/service-${at}`, {
    type: traits.type as 'ClusterIP',
    clusterIPs: [address(96, at)],
    ports,
    externalTrafficPolicy: traits.isExternalLocal ? 'Local' : 'Cluster',
    internalTrafficPolicy: traits.isInternalLocal ? 'Local' : 'Cluster',
    externalIPs: traits.hasExternalIp ? [address(97, at)] : [],
    loadBalancerIngress:
      traits.hasVip && traits.type === 'LoadBalancer' ? [{ ip: address(98, at), ipMode: 'VIP' }] : [],
    loadBalancerSourceRanges: traits.hasRanges ? [`${address(9, 1)}/${address(9, 1).includes(':') ? 128 : 32}`] : [],
    healthCheckNodePort: traits.isExternalLocal ? 32000 + at : 0,
    ...(traits.affinitySeconds !== undefined && { affinitySeconds: traits.affinitySeconds }),
  })
  const slice = sliceOf(`shop/service-${at}-1`, `service-${at}`, {
    ports: traits.portNames.map((name) => slicePortOf(8080, { name })),
    endpoints: traits.endpoints.map(({ host, nodeName, conditions, zone }) =>
      endpointOf(address(1, host), { nodeName, conditions, ...(zone !== undefined && { forZones: [zone] }) }),
    ),
  })
  return { service, slice }
}

function rulesOf(ruleset: Ruleset): { readonly table: string; readonly chain: string; readonly rule: Rule }[] {
  return [...ruleset.tables.values()].flatMap(({ name, chains }) =>
    [...chains.values()].flatMap((chain) => chain.rules.map((rule) => ({ table: name, chain: chain.name, rule }))),
  )
}

test('every target is a chain of the same table or one of iptables', () => {
  fc.assert(
    fc.property(planArbitrary, ([services, settings]) => {
      const ruleset = savedRuleset(render(services, settings, 'ipv4'))
      for (const { table, chain, rule } of rulesOf(ruleset)) {
        const target = rule.action?.target
        if (target === undefined || isKnownTarget(target)) continue
        expect(ruleset.tables.get(table)?.chains.has(target), `${table} ${chain} jumps to ${target}`).toBe(true)
      }
    }),
    runs,
  )
})

test('every chain of a Service is entered from somewhere', () => {
  fc.assert(
    fc.property(planArbitrary, ([services, settings]) => {
      const ruleset = savedRuleset(render(services, settings, 'ipv4'))
      const targets = new Set(rulesOf(ruleset).map(({ rule }) => rule.action?.target))
      for (const name of ruleset.tables.get('nat')?.chains.keys() ?? []) {
        if (/^KUBE-(SVC|SEP|EXT|FW)-/.test(name)) expect(targets.has(name), name).toBe(true)
      }
    }),
    runs,
  )
})

test('the balancing rules of a chain give each endpoint the same share', () => {
  fc.assert(
    fc.property(planArbitrary, ([services, settings]) => {
      const nat = savedRuleset(render(services, settings, 'ipv4')).tables.get('nat')
      for (const chain of nat?.chains.values() ?? []) {
        if (!/^KUBE-SV[CL]-/.test(chain.name)) continue
        const balancing = chain.rules.filter(
          (rule) => rule.action?.target.startsWith('KUBE-SEP-') && optionOf(rule, 'recent', '--rcheck') === undefined,
        )
        let left = 1
        for (const rule of balancing) {
          const probability = Number(optionOf(rule, 'statistic', '--probability')?.values[0] ?? 1)
          expect(left * probability).toBeCloseTo(1 / balancing.length, 8)
          left *= 1 - probability
        }
        expect(left).toBe(0)
      }
    }),
    runs,
  )
})

test('IPv4 and IPv6 have the same rules but for addresses, names and the loopback', () => {
  const shapeOf = (sync: IptablesSync): string[] =>
    rulesOf(savedRuleset(sync))
      .filter(({ chain }) => chain !== 'KUBE-FIREWALL')
      .map(({ table, chain, rule }) => {
        const matches = rule.clauses
          .filter(({ kind }) => kind === 'match')
          .map((clause) => ('name' in clause ? clause.name : ''))
        const target = rule.action?.target ?? ''
        return `${table} ${chain.slice(0, 9)} ${matches.join()} ${target.slice(0, 9)}`
      })
      .sort()
  fc.assert(
    fc.property(planArbitrary, ([services, settings]) => {
      const same = { ...settings, localhostNodePorts: false }
      expect(shapeOf(render(services, same, 'ipv6'))).toEqual(shapeOf(render(services, same, 'ipv4')))
    }),
    runs,
  )
})

test('restore text, read and normalised, is what is saved; and a save reads back as itself', () => {
  fc.assert(
    fc.property(planArbitrary, fc.constantFrom<Family>('ipv4', 'ipv6'), ([services, settings], family) => {
      const sync = render(services, settings, family)
      const saved = printSave(savedRuleset(sync), { date: 'now' })
      const parts = parseSave(printRestore(fullTables(sync)), 'restore').rulesets
      const read: Ruleset = { family, tables: new Map(parts.flatMap(({ tables }) => [...tables])) }
      const again = parseSave(saved, 'save').rulesets[0]
      if (again === undefined) throw new Error('no ruleset')
      expect(printSave(normalizeRuleset(read), { date: 'now' })).toBe(saved)
      expect(printSave(again, { date: 'now' })).toBe(saved)
    }),
    { ...runs, numRuns: 60 },
  )
})
