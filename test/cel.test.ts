/** Each CEL rule of crds/ and the function that stands for it here say the same of the same values. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type ApiKind, presentOf, type Schema, type ValidationRule } from '../src/model/api-schema'
import { trafficKinds } from '../src/model/traffic-policy'
import { holdsByCel } from './cel'
import { arbitrarySpec } from './random/arbitrary-traffic-policy'
import { seedOfRun } from './random/random'

function rulesIn(given: Schema): readonly ValidationRule[] {
  const schema = presentOf(given)
  const inner =
    schema.kind === 'list'
      ? rulesIn(schema.item)
      : schema.kind === 'map'
        ? Object.values(schema.fields).flatMap(rulesIn)
        : []
  return [...(schema.rules ?? []), ...inner]
}

function rulesOf({ spec, status, rules }: ApiKind): readonly ValidationRule[] {
  return [...rules, ...rulesIn(spec), ...rulesIn(status)]
}

const rules = new Map(trafficKinds.flatMap(rulesOf).map((rule) => [rule.message, rule]))

/** For each rule, by its message: values that keep it, and values that break it. */
const samples: Readonly<Record<string, { readonly kept: readonly unknown[]; readonly broken: readonly unknown[] }>> = {
  'the name default-deny-all is reserved for the built-in policy': {
    kept: [
      { metadata: { name: 'web' }, spec: { rules: [] } },
      { metadata: { name: 'default-deny-all' }, spec: { rules: [{ name: 'deny-all', action: 'Deny' }] } },
    ],
    broken: [
      { metadata: { name: 'default-deny-all' }, spec: { rules: [] } },
      { metadata: { name: 'default-deny-all' }, spec: { rules: [{ name: 'deny-all', action: 'Allow' }] } },
      { metadata: { name: 'default-deny-all' }, spec: { rules: [{ name: 'deny-all', action: 'Deny', match: {} }] } },
      { metadata: { name: 'default-deny-all' }, spec: { rules: [{ name: 'other', action: 'Deny' }] } },
    ],
  },
  'rule names are unique within a policy': {
    kept: [[], [{ name: 'a' }], [{ name: 'a' }, { name: 'b' }]],
    broken: [[{ name: 'a' }, { name: 'b' }, { name: 'a' }]],
  },
  'must be a network as ADDRESS/LENGTH without host bits; IPv4-mapped IPv6 is refused': {
    kept: [
      '10.0.0.0/8',
      '0.0.0.0/0',
      '10.0.0.5/32',
      'fd00::/8',
      '::/0',
      '::1/128',
      '64:ff9b::c633:6400/120',
      'FD00::/8',
    ],
    broken: [
      '10.0.0.1/8',
      '10.0.0.0',
      '10.0.0.0/33',
      '10.0.0.0/08',
      '010.0.0.0/8',
      '10.0.0/8',
      'fd00::1/64',
      'fd00::/129',
      'fe80::%eth0/64',
      '::ffff:10.0.0.0/104',
      '::ffff:a00:0/104',
      '::ffff:0:0/96',
      'web',
      '/8',
      '10.0.0.0/ 8',
    ],
  },
  'from must not be above to': {
    kept: [{ from: 80 }, { from: 80, to: 80 }, { from: 1, to: 65535 }],
    broken: [{ from: 90, to: 80 }],
  },
  'ports go with TCP, UDP and SCTP only': {
    kept: [
      {},
      { protocols: ['ICMP'] },
      { protocols: ['ICMP'], sourcePorts: [], destinationPorts: [] },
      { destinationPorts: [{ from: 80 }] },
      { protocols: [], destinationPorts: [{ from: 80 }] },
      { protocols: ['TCP', 'udp', 'SCTP'], destinationPorts: [{ from: 80 }], sourcePorts: [{ from: 80 }] },
    ],
    broken: [
      { protocols: ['TCP', 'ICMP'], destinationPorts: [{ from: 80 }] },
      { protocols: ['icmpv6'], sourcePorts: [{ from: 80 }] },
    ],
  },
  'icmp goes with the protocols ICMP and ICMPv6 only, which the rule must name': {
    kept: [{}, { icmp: [] }, { icmp: [], protocols: ['TCP'] }, { icmp: [{ type: 8 }], protocols: ['ICMP', 'icmpv6'] }],
    broken: [
      { icmp: [{ type: 8 }] },
      { icmp: [{ type: 8 }], protocols: [] },
      { icmp: [{ type: 8 }], protocols: ['TCP'] },
      { icmp: [{ type: 8 }], protocols: ['ICMP', 'UDP'] },
    ],
  },
  'a protocol stands once in the list': {
    kept: [{}, { protocols: [] }, { protocols: ['TCP', 'UDP'] }, { protocols: ['ICMP', 'ICMPv6'] }],
    broken: [{ protocols: ['TCP', 'TCP'] }, { protocols: ['TCP', 'UDP', 'tcp'] }],
  },
  'with ipFamily, every network is of that family': {
    kept: [
      {},
      { sources: ['10.0.0.0/8', 'fd00::/8'] },
      { ipFamily: 'IPv4', sources: ['10.0.0.0/8'], destinations: [] },
      { ipFamily: 'IPv6', sources: ['64:ff9b::/96'], destinations: ['::/0'] },
    ],
    broken: [
      { ipFamily: 'IPv4', sources: ['10.0.0.0/8', 'fd00::/8'] },
      { ipFamily: 'IPv6', destinations: ['10.0.0.0/8'] },
    ],
  },
  'ICMP is of the family IPv4, ICMPv6 of the family IPv6': {
    kept: [
      { protocols: ['ICMP', 'ICMPv6'] },
      { ipFamily: 'IPv4' },
      { ipFamily: 'IPv4', protocols: ['ICMP', 'TCP'] },
      { ipFamily: 'IPv6', protocols: ['icmpv6'] },
    ],
    broken: [
      { ipFamily: 'IPv6', protocols: ['ICMP'] },
      { ipFamily: 'IPv4', protocols: ['TCP', 'icmpv6'] },
    ],
  },
  'some source and some destination must be of one family, or the rule matches nothing': {
    kept: [
      {},
      { sources: ['10.0.0.0/8'], destinations: [] },
      { sources: ['10.0.0.0/8', 'fd00::/8'], destinations: ['fd00::/8'] },
    ],
    broken: [{ sources: ['10.0.0.0/8'], destinations: ['fd00::/8', '::/0'] }],
  },
}

const faultOf = ({ fault }: ValidationRule, value: unknown): unknown => fault(value as never)

test('every rule has values that keep it and values that break it', () => {
  expect([...rules.keys()].sort()).toEqual(Object.keys(samples).sort())
})

const cases = Object.entries(samples).flatMap(([message, { kept, broken }]) => [
  ...kept.map((value) => ({ message, value, holds: true })),
  ...broken.map((value) => ({ message, value, holds: false })),
])

test.each(cases)('$message: $value', ({ message, value, holds }) => {
  const rule = rules.get(message)
  expect(rule).toBeDefined()
  if (rule === undefined) return
  expect(holdsByCel(rule.cel, value)).toBe(holds)
  expect(faultOf(rule, value) === undefined).toBe(holds)
})

const anyMatch = fc.record(
  {
    ipFamily: fc.constantFrom('IPv4', 'IPv6'),
    sources: fc.uniqueArray(fc.constantFrom('10.0.0.0/8', 'fd00::/8', '::/0'), { maxLength: 2 }),
    destinations: fc.uniqueArray(fc.constantFrom('10.0.0.0/8', 'fd00::/8'), { maxLength: 2 }),
    protocols: fc.array(fc.constantFrom('TCP', 'tcp', 'UDP', 'ICMP', 'icmpv6'), { maxLength: 3 }),
    sourcePorts: fc.array(fc.constant({ from: 80 }), { maxLength: 1 }),
    destinationPorts: fc.array(fc.constant({ from: 80 }), { maxLength: 1 }),
    icmp: fc.array(fc.constant({ type: 8 }), { maxLength: 1 }),
  },
  { requiredKeys: [] },
)

test('CEL and our validator agree about every rule of random matches', () => {
  const ofMatch = [...rules.values()].filter(({ message }) => /ports go|icmp goes|once in|family/i.test(message))
  expect(ofMatch).toHaveLength(6)
  fc.assert(
    fc.property(anyMatch, (match) => {
      for (const rule of ofMatch) {
        expect(holdsByCel(rule.cel, match), rule.message).toBe(faultOf(rule, match) === undefined)
      }
    }),
    { numRuns: 500, seed: seedOfRun() },
  )
})

test('CEL refuses no random policy that compiles', () => {
  const unique = rules.get('rule names are unique within a policy')
  fc.assert(
    fc.property(arbitrarySpec, ({ rules: list }) => unique === undefined || holdsByCel(unique.cel, list)),
    { numRuns: 50, seed: seedOfRun() },
  )
})
