/** Policies and packets of one small world, as arbitraries that shrink: few networks and ports, so that they meet often. */
import fc from 'fast-check'
import { type Ip, parseIp } from '#base/ip'
import { type EntryProtocol, pathClasses } from '#compile/traffic-policy/entry'
import type { PolicyPacket } from '#compile/traffic-policy/policy-packet'
import type { TrafficPolicy } from '#model/traffic-policy'
import { pathWords, type TrafficMatch, type TrafficPolicySpec, type TrafficRule } from '#model/traffic-policy-schema'

const networks = {
  IPv4: ['0.0.0.0/0', '10.0.0.0/8', '10.0.0.0/24', '10.0.0.4/30', '10.0.0.5/32', '10.1.0.0/16', '203.0.113.0/24'],
  IPv6: ['::/0', 'fd00::/8', 'fd00::/64', 'fd00::4/126', 'fd00::5/128', '64:ff9b::/96', '64:ff9b::cb00:7100/120'],
} as const
const addresses = {
  IPv4: ['10.0.0.1', '10.0.0.5', '10.0.0.6', '10.0.1.5', '10.1.0.5', '203.0.113.7', '192.0.2.1'],
  IPv6: ['fd00::1', 'fd00::5', 'fd00::6', 'fd00:1::5', '64:ff9b::cb00:7107', '64:ff9b::1', '2001:db8::1'],
} as const
const ports = [1, 22, 80, 81, 443, 1024, 8080, 65535] as const
const families = ['IPv4', 'IPv6'] as const
const protocols = {
  IPv4: ['TCP', 'UDP', 'SCTP', 'ICMP'],
  IPv6: ['tcp', 'udp', 'sctp', 'icmpv6'],
} as const

const port = fc.constantFrom(...ports)
const portRange = fc
  .tuple(port, fc.option(port, { nil: undefined }))
  .map(([from, to]) => (to === undefined ? { from } : { from: Math.min(from, to), to: Math.max(from, to) }))
const portRanges = fc.array(portRange, { maxLength: 3 })
const icmp = fc.uniqueArray(
  fc.record({ type: fc.constantFrom(0, 3, 8, 128, 129), code: fc.constantFrom(0, 1, 4) }, { requiredKeys: ['type'] }),
  { minLength: 1, maxLength: 3, selector: ({ type, code }) => `${type} ${code}` },
)

/** Of one family, or without a family for lack of networks. */
const match: fc.Arbitrary<TrafficMatch> = fc.constantFrom(...families).chain((ipFamily) => {
  const cidrs = fc.uniqueArray(fc.constantFrom<string>(...networks[ipFamily]), { maxLength: 3 })
  const [, , , icmpOf] = protocols[ipFamily]
  const base = {
    paths: fc.uniqueArray(fc.constantFrom(...pathWords), { maxLength: 2 }),
    sources: cidrs,
    destinations: cidrs,
  }
  const transports = fc.uniqueArray(fc.constantFrom(...protocols[ipFamily].slice(0, 3)), { maxLength: 2 })
  return fc.oneof(
    fc.record({ ...base, ipFamily: fc.constant(ipFamily) }, { requiredKeys: [] }),
    fc.record(
      { ...base, protocols: transports, sourcePorts: portRanges, destinationPorts: portRanges },
      { requiredKeys: [] },
    ),
    fc.record({ ...base, protocols: fc.constant([icmpOf]), icmp }, { requiredKeys: ['protocols'] }),
  )
})

const rule: fc.Arbitrary<Omit<TrafficRule, 'name'>> = fc.record(
  { action: fc.constantFrom('Allow' as const, 'Deny' as const), match },
  { requiredKeys: ['action'] },
)

/** Most are short, some have all 64 rules. */
export const arbitrarySpec: fc.Arbitrary<TrafficPolicySpec> = fc
  .record({
    stateful: fc.boolean(),
    rules: fc.oneof(
      { weight: 40, arbitrary: fc.array(rule, { maxLength: 6 }) },
      { weight: 1, arbitrary: fc.array(rule, { minLength: 20, maxLength: 64 }) },
    ),
  })
  .map(({ stateful, rules }) => ({ stateful, rules: rules.map((one, index) => ({ name: `rule-${index}`, ...one })) }))

export function policyOf(spec: TrafficPolicySpec): TrafficPolicy {
  const meta = {
    kind: 'TrafficPolicy',
    name: 'random',
    namespace: 'tenant',
    uid: 'u1',
    labels: {},
    annotations: {},
    ownerReferences: [],
    origin: { file: 'random' },
    assumed: [],
  }
  return { meta, generation: 7, spec, problems: [] }
}

export const arbitraryPacket: fc.Arbitrary<PolicyPacket> = fc.constantFrom(...families).chain((family) => {
  const ip = fc.constantFrom<string>(...addresses[family]).map(ipOf)
  const ends = { source: ip, destination: ip, path: fc.constantFrom(...pathClasses) }
  const icmpOf: EntryProtocol = family === 'IPv4' ? 'icmp' : 'icmpv6'
  const transport = fc.constantFrom<EntryProtocol>('tcp', 'udp', 'sctp')
  return fc.oneof(
    { weight: 6, arbitrary: fc.record({ ...ends, protocol: transport, sourcePort: port, destinationPort: port }) },
    {
      weight: 3,
      arbitrary: fc.record({
        ...ends,
        protocol: fc.constant(icmpOf),
        icmpType: fc.constantFrom(0, 3, 8, 128, 129),
        icmpCode: fc.constantFrom(0, 1, 4),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        ...ends,
        protocol: fc.oneof(transport, fc.constant(icmpOf)),
        isLaterFragment: fc.constant(true),
      }),
    },
    { weight: 1, arbitrary: fc.record({ ...ends, protocol: fc.constantFrom(47, 50, 112) }) },
  )
})

function ipOf(text: string): Ip {
  const ip = parseIp(text)
  if (ip === undefined) throw new Error(`${text} is no address`)
  return ip
}
