/** TrafficPolicy as its schema: named rules in order, of which the first that matches decides. */
import { parsePrefix } from '#base/prefix'
import type { ApiKind, ValidationRule, ValueOf } from './api-schema'
import { optional } from './api-schema'
import { conditionsSchema } from './condition-schema'

export const pathWords = ['Private', 'Internet', 'VIP', 'Service', 'Edge'] as const
/** As Kubernetes writes them, and in the small letters of the command line. */
export const protocolWords = ['TCP', 'UDP', 'SCTP', 'ICMP', 'ICMPv6', 'tcp', 'udp', 'sctp', 'icmp', 'icmpv6'] as const
export const reservedPolicyName = 'default-deny-all'
export const mostRules = 64
/** Of the CIDRs of one side, and of the port ranges of one side. */
export const mostListed = 16

const nameSchema = {
  kind: 'text',
  description: 'Names the rule within its policy; counters go by it.',
  pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
  noun: 'a name of a-z, 0-9 and "-", with no "-" at either end',
  minLength: 1,
  maxLength: 63,
} as const

export const cidrRule: ValidationRule = {
  cel: 'isCIDR(self) && cidr(self) == cidr(self).masked()',
  message: 'must be a network as ADDRESS/LENGTH without host bits; IPv4-mapped IPv6 is refused',
  hint: 'write the network address, such as 10.0.0.0/8',
  fault: (text: string) => {
    const parsed = parsePrefix(text)
    if (parsed === undefined) return { message: `"${text}" is no network of ADDRESS/LENGTH` }
    return parsed.hasHostBits ? { message: `"${text}" has bits set beyond its length` } : undefined
  },
}

const cidrs = {
  kind: 'list',
  item: { kind: 'text', minLength: 1, maxLength: 49, rules: [cidrRule] },
  maxItems: mostListed,
  merge: 'set',
} as const

const portRange = {
  kind: 'map',
  fields: {
    from: { kind: 'number', from: 1, to: 65535 },
    to: optional({ kind: 'number', from: 1, to: 65535, description: 'The last port; that of from when left out.' }),
  },
  rules: [
    {
      cel: '!has(self.to) || self.from <= self.to',
      message: 'from must not be above to',
      hint: 'swap the two',
      fault: ({ from, to }: { from: number; to?: number }) =>
        to !== undefined && from > to ? { message: `the range ${from} to ${to} is reversed` } : undefined,
    },
  ],
} as const

const portRanges = { kind: 'list', item: portRange, maxItems: mostListed, merge: 'atomic' } as const

const icmp = {
  kind: 'list',
  description: 'ICMP types, each with a code or with any.',
  item: {
    kind: 'map',
    fields: {
      type: { kind: 'number', from: 0, to: 255 },
      code: optional({ kind: 'number', from: 0, to: 255 }),
    },
  },
  maxItems: mostListed,
  merge: 'atomic',
} as const

type MatchShape = {
  readonly ipFamily?: 'IPv4' | 'IPv6'
  readonly sources?: readonly string[]
  readonly destinations?: readonly string[]
  readonly protocols?: readonly string[]
  readonly sourcePorts?: readonly unknown[]
  readonly destinationPorts?: readonly unknown[]
  readonly icmp?: readonly unknown[]
}

const isFilled = (list: readonly unknown[] | undefined): boolean => list !== undefined && list.length > 0
const isIcmp = (protocol: string): boolean => protocol.toLowerCase().startsWith('icmp')
const familyOf = (cidr: string): 'IPv4' | 'IPv6' => (cidr.includes(':') ? 'IPv6' : 'IPv4')
const ends = ['sources', 'destinations'] as const

const matchRules: readonly ValidationRule[] = [
  {
    cel: "(!has(self.sourcePorts) || self.sourcePorts.size() == 0) && (!has(self.destinationPorts) || self.destinationPorts.size() == 0) || !has(self.protocols) || self.protocols.all(p, !p.lowerAscii().startsWith('icmp'))",
    message: 'ports go with TCP, UDP and SCTP only',
    hint: 'leave the ports out, or make a rule of its own for ICMP',
    fault: ({ protocols = [], sourcePorts, destinationPorts }: MatchShape) => {
      const wrong = protocols.find(isIcmp)
      if (wrong === undefined || !(isFilled(sourcePorts) || isFilled(destinationPorts))) return undefined
      return { at: 'protocols', message: `it gives ports, and ${wrong} has none` }
    },
  },
  {
    cel: "!has(self.icmp) || self.icmp.size() == 0 || (has(self.protocols) && self.protocols.size() > 0 && self.protocols.all(p, p.lowerAscii().startsWith('icmp')))",
    message: 'icmp goes with the protocols ICMP and ICMPv6 only, which the rule must name',
    hint: 'write protocols: [ICMP] or [ICMPv6]',
    fault: ({ protocols = [], icmp }: MatchShape) => {
      if (!isFilled(icmp)) return undefined
      const wrong = protocols.find((protocol) => !isIcmp(protocol))
      if (wrong !== undefined) return { at: 'icmp', message: `it gives ICMP types, and ${wrong} has none` }
      return protocols.length > 0 ? undefined : { at: 'icmp', message: 'it gives ICMP types and names no protocol' }
    },
  },
  {
    cel: '!has(self.protocols) || self.protocols.all(p, self.protocols.exists_one(q, q.lowerAscii() == p.lowerAscii()))',
    message: 'a protocol stands once in the list',
    hint: 'leave one of the two out',
    fault: ({ protocols = [] }: MatchShape) => {
      const small = protocols.map((protocol) => protocol.toLowerCase())
      const twice = protocols.find((_, index) => small.indexOf(small[index] ?? '') !== index)
      return twice === undefined ? undefined : { at: 'protocols', message: `${twice} stands in the list twice` }
    },
  },
  {
    cel: "!has(self.ipFamily) || ((!has(self.sources) || self.sources.all(c, !isCIDR(c) || (cidr(c).ip().family() == 4) == (self.ipFamily == 'IPv4'))) && (!has(self.destinations) || self.destinations.all(c, !isCIDR(c) || (cidr(c).ip().family() == 4) == (self.ipFamily == 'IPv4'))))",
    message: 'with ipFamily, every network is of that family',
    hint: 'change ipFamily, or leave the network out',
    fault: (match: MatchShape) => {
      for (const end of ends) {
        const at = (match[end] ?? []).findIndex(
          (cidr) => match.ipFamily !== undefined && familyOf(cidr) !== match.ipFamily,
        )
        if (at >= 0)
          return { at: `${end}[${at}]`, message: `${match[end]?.[at]} is not of the family ${match.ipFamily}` }
      }
      return undefined
    },
  },
  {
    cel: "!has(self.ipFamily) || !has(self.protocols) || self.protocols.all(p, !p.lowerAscii().startsWith('icmp') || (p.lowerAscii() == 'icmp') == (self.ipFamily == 'IPv4'))",
    message: 'ICMP is of the family IPv4, ICMPv6 of the family IPv6',
    hint: 'write ICMP with IPv4 and ICMPv6 with IPv6',
    fault: ({ ipFamily, protocols = [] }: MatchShape) => {
      const wrong = protocols.find((protocol) => isIcmp(protocol) && (protocol.length === 4) !== (ipFamily === 'IPv4'))
      if (ipFamily === undefined || wrong === undefined) return undefined
      return { at: 'protocols', message: `${wrong} is not of the family ${ipFamily}` }
    },
  },
  {
    cel: '!has(self.sources) || !has(self.destinations) || self.sources.size() == 0 || self.destinations.size() == 0 || self.sources.exists(s, self.destinations.exists(d, !isCIDR(s) || !isCIDR(d) || cidr(s).ip().family() == cidr(d).ip().family()))',
    message: 'some source and some destination must be of one family, or the rule matches nothing',
    hint: 'give both sides networks of one family',
    fault: ({ sources = [], destinations = [] }: MatchShape) => {
      if (sources.length === 0 || destinations.length === 0) return undefined
      const isPossible = sources.some((source) => destinations.some((to) => familyOf(source) === familyOf(to)))
      return isPossible ? undefined : { at: 'destinations', message: 'no destination is of the family of a source' }
    },
  },
]

const matchSchema = {
  kind: 'map',
  description: 'Every field that is given must hold; a list holds when one of its items does, an empty one always.',
  fields: {
    paths: optional({
      kind: 'list',
      description: 'Path classes; with any given, traffic without a class does not match.',
      item: { kind: 'text', words: pathWords },
      maxItems: pathWords.length,
      merge: 'set',
    }),
    ipFamily: optional({ kind: 'text', words: ['IPv4', 'IPv6'] }),
    sources: optional(cidrs),
    destinations: optional(cidrs),
    protocols: optional({
      kind: 'list',
      description: 'Without it, every protocol; with ports, TCP, UDP and SCTP.',
      item: { kind: 'text', words: protocolWords },
      maxItems: 5,
      merge: 'atomic',
    }),
    sourcePorts: optional(portRanges),
    destinationPorts: optional(portRanges),
    icmp: optional(icmp),
  },
  rules: matchRules,
} as const

const ruleSchema = {
  kind: 'map',
  fields: {
    name: nameSchema,
    action: { kind: 'text', words: ['Allow', 'Deny'] },
    match: optional(matchSchema),
  },
} as const

const uniqueNames: ValidationRule = {
  cel: 'self.all(one, self.exists_one(other, other.name == one.name))',
  message: 'rule names are unique within a policy',
  hint: 'rename one of them: counters go by the name',
  fault: (rules: readonly { readonly name: string }[]) => {
    const names = rules.map(({ name }) => name)
    const at = names.findIndex((name, index) => names.indexOf(name) !== index)
    return at < 0 ? undefined : { at: `[${at}].name`, message: `the name "${names[at]}" is taken by a rule before it` }
  },
}

const specSchema = {
  kind: 'map',
  fields: {
    stateful: optional({
      kind: 'flag',
      default: true,
      description: 'Whether replies to an allowed connection pass without a rule.',
    }),
    rules: {
      kind: 'list',
      description: 'In order; the first that matches decides, and what none matches is denied.',
      item: ruleSchema,
      maxItems: mostRules,
      merge: 'atomic',
      rules: [uniqueNames],
    },
  },
} as const

const reservedName: ValidationRule = {
  cel: `self.metadata.name != '${reservedPolicyName}' || (self.spec.rules.size() == 1 && self.spec.rules.all(r, r.name == 'deny-all' && r.action == 'Deny' && !has(r.match)))`,
  message: `the name ${reservedPolicyName} is reserved for the built-in policy`,
  hint: 'choose another name',
  fault: ({ metadata, spec }: { metadata: { name: string }; spec: ValueOf<typeof specSchema> }) => {
    const [rule, ...others] = spec.rules
    const isBuiltIn = rule?.name === 'deny-all' && rule.action === 'Deny' && rule.match === undefined
    if (metadata.name !== reservedPolicyName || (isBuiltIn && others.length === 0)) return undefined
    return { at: 'metadata.name', message: `the name ${reservedPolicyName} is reserved for the built-in policy` }
  },
}

export const trafficPolicyKind = {
  kind: 'TrafficPolicy',
  plural: 'trafficpolicies',
  shortNames: ['tpol'],
  description: 'Rules about the traffic of one direction of an interface.',
  spec: specSchema,
  status: { kind: 'map', fields: { conditions: optional(conditionsSchema) } },
  rules: [reservedName],
  columns: [
    { name: 'Valid', path: '.status.conditions[?(@.type=="Valid")].status', type: 'string' },
    { name: 'Stateful', path: '.spec.stateful', type: 'boolean' },
    { name: 'Age', path: '.metadata.creationTimestamp', type: 'date' },
  ],
} as const satisfies ApiKind

export type TrafficPolicySpec = ValueOf<typeof specSchema>
export type TrafficPolicyStatus = ValueOf<typeof trafficPolicyKind.status>
export type TrafficRule = ValueOf<typeof ruleSchema>
export type TrafficMatch = ValueOf<typeof matchSchema>
