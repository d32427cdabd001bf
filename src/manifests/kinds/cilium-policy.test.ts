/** Bad input in Cilium's policies: what the API server refuses, what its schema drops, and what the agent alone refuses. */
import { describe, expect, test } from 'vitest'
import type { CiliumVersion } from '#model/cilium-version'
import { askCilium, ccnp, cnp } from '../../../test/policy/ask-cilium'
import type { Raw } from '../../../test/policy/policy-objects'

const all = { endpointSelector: {} }
const ingress = (element: Raw): Raw => cnp('x/p', { ...all, ingress: [element] })
const egress = (element: Raw): Raw => cnp('x/p', { ...all, egress: [element] })
const ports = (...list: readonly Raw[]): Raw => ({ toPorts: [{ ports: list }] })

function found(policy: Raw, options: { readonly version?: CiliumVersion } = {}): readonly string[] {
  const { findings } = askCilium([policy], options)
  return findings.filter(({ code }) => code.startsWith('policy.')).map(({ code, path }) => `${code} ${path}`)
}

describe('refused by the API server', () => {
  test.each<[string, Raw, string]>([
    ['A1: two selectors', cnp('x/p', { ...all, nodeSelector: {}, ingress: [{}] }), 'spec'],
    ['A2: no selector', cnp('x/p', { ingress: [{}] }), 'spec'],
    ['A3: no section at all', cnp('x/p', all), 'spec'],
    ['A4: a number for a port', ingress(ports({ port: 80 })), 'spec.ingress[0].toPorts[0].ports[0].port'],
    [
      'A5: a protocol in lower case',
      ingress(ports({ port: '80', protocol: 'tcp' })),
      'spec.ingress[0].toPorts[0].ports[0].protocol',
    ],
    [
      'A6: an endPort above 65535',
      ingress(ports({ port: '80', endPort: 70000 })),
      'spec.ingress[0].toPorts[0].ports[0].endPort',
    ],
    [
      'A7: a text for an endPort',
      ingress(ports({ port: '80', endPort: '90' })),
      'spec.ingress[0].toPorts[0].ports[0].endPort',
    ],
    [
      'A8: 41 ports',
      ingress(ports(...Array.from({ length: 41 }, () => ({ port: '80' })))),
      'spec.ingress[0].toPorts[0].ports',
    ],
    ['A9: an unknown entity', ingress({ fromEntities: ['internet'] }), 'spec.ingress[0].fromEntities[0]'],
    [
      'A10: world-ipv4, which the agent alone knows',
      ingress({ fromEntities: ['world-ipv4'] }),
      'spec.ingress[0].fromEntities[0]',
    ],
    [
      'A11: an unknown operator',
      ingress({ fromEndpoints: [{ matchExpressions: [{ key: 'a', operator: 'in', values: ['b'] }] }] }),
      'spec.ingress[0].fromEndpoints[0].matchExpressions[0].operator',
    ],
    [
      'A12: a value that is no label',
      ingress({ fromEndpoints: [{ matchLabels: { a: 'b c' } }] }),
      'spec.ingress[0].fromEndpoints[0].matchLabels.a',
    ],
    [
      'A13: a cidr beside a group',
      ingress({ fromCIDRSet: [{ cidr: '10.0.0.0/8', cidrGroupRef: 'g' }] }),
      'spec.ingress[0].fromCIDRSet[0]',
    ],
    ['A14: an empty CIDRSet entry', ingress({ fromCIDRSet: [{}] }), 'spec.ingress[0].fromCIDRSet[0]'],
    [
      'A15: a type of ICMP that there is not',
      ingress({ icmps: [{ fields: [{ type: 300 }] }] }),
      'spec.ingress[0].icmps[0].fields[0].type',
    ],
    [
      'A16: a family that there is not',
      ingress({ icmps: [{ fields: [{ type: 8, family: 'ipv4' }] }] }),
      'spec.ingress[0].icmps[0].fields[0].family',
    ],
    [
      'A17: both names of the DNS',
      egress({ toFQDNs: [{ matchName: 'a.b', matchPattern: '*' }] }),
      'spec.egress[0].toFQDNs[0]',
    ],
    ['A18: a name with blanks', egress({ toFQDNs: [{ matchName: 'a b' }] }), 'spec.egress[0].toFQDNs[0].matchName'],
    [
      'A19: an authentication that there is not',
      ingress({ authentication: { mode: 'maybe' } }),
      'spec.ingress[0].authentication.mode',
    ],
    [
      'A20: http beside dns',
      egress({
        toPorts: [{ ports: [{ port: '80', protocol: 'TCP' }], rules: { http: [{}], dns: [{ matchPattern: '*' }] } }],
      }),
      'spec.egress[0].toPorts[0].rules',
    ],
    [
      'A21: a listener of priority 0',
      egress({
        toPorts: [
          {
            ports: [{ port: '80', protocol: 'TCP' }],
            listener: { name: 'l', priority: 0, envoyConfig: { name: 'c' } },
          },
        ],
      }),
      'spec.egress[0].toPorts[0].listener.priority',
    ],
    ['A22: a list that is a map', cnp('x/p', { ...all, ingress: {} }), 'spec.ingress'],
    [
      'A23: a text for a flag',
      cnp('x/p', { ...all, ingress: [{}], enableDefaultDeny: { ingress: 'no' } }),
      'spec.enableDefaultDeny.ingress',
    ],
    ['A24: a version that there is not', { ...ingress({}), apiVersion: 'cilium.io/v3' }, 'apiVersion'],
  ])('%s', (_, policy, path) => {
    expect(found(policy)).toEqual([`policy.refused ${path}`])
  })

  test('the object is left out of the cluster', () => {
    expect(askCilium([ingress(ports({ port: 80 }))]).cluster.ciliumPolicies.size).toBe(0)
  })
})

test('A30: a field that the CRD does not know is dropped, and told with its place', () => {
  expect(found(ingress({ fromEndpoint: [{}] }))).toEqual(['policy.unknown-field spec.ingress[0].fromEndpoint'])
  expect(found(cnp('x/p', { ...all, ingressdeny: [{}], ingress: [{}] }))).toEqual([
    'policy.unknown-field spec.ingressdeny',
  ])
})

test('A31: a name of ICMP of the other family stands in the cluster, and the agent cannot read it', () => {
  expect(found(ingress({ icmps: [{ fields: [{ type: 'PacketTooBig' }] }] }))).toEqual([
    'policy.not-enforced spec.ingress[0].icmps[0].fields[0].type',
  ])
})

test('A32: neither spec nor specs is taken by the API server, and enforces nothing', () => {
  const { spec: _, ...policy } = ingress({})
  expect(found(policy)).toEqual(['policy.not-enforced spec'])
})

describe('refused by the agent', () => {
  const http = { rules: { http: [{}] } }
  const tcp = (port: string, more: Raw = {}): Raw => ({ toPorts: [{ ports: [{ port, protocol: 'TCP' }], ...more }] })

  test.each<[string, Raw, string]>([
    ['G1: nodeSelector in a namespaced policy', cnp('x/p', { nodeSelector: {}, ingress: [{}] }), 'spec.nodeSelector'],
    ['G2: two kinds of peers', ingress({ fromEndpoints: [{}], fromCIDR: ['10.0.0.0/8'] }), 'spec.ingress[0]'],
    [
      'G3: two kinds of peers in a deny',
      cnp('x/p', { ...all, ingressDeny: [{ fromEndpoints: [{}], fromEntities: ['world'] }] }),
      'spec.ingressDeny[0]',
    ],
    ['G4: icmps beside toPorts', ingress({ icmps: [{ fields: [{ type: 8 }] }], ...tcp('80') }), 'spec.ingress[0]'],
    ['G5: fromNodes without the option', ingress({ fromNodes: [{}] }), 'spec.ingress[0]'],
    [
      'G6: In without values',
      ingress({ fromEndpoints: [{ matchExpressions: [{ key: 'a', operator: 'In' }] }] }),
      'spec.ingress[0].fromEndpoints[0].matchExpressions[0]',
    ],
    [
      'G7: Exists with values',
      ingress({ fromEndpoints: [{ matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] }] }),
      'spec.ingress[0].fromEndpoints[0].matchExpressions[0]',
    ],
    [
      'G8: a key that is none',
      ingress({ fromEndpoints: [{ matchLabels: { 'a b': 'c' } }] }),
      'spec.ingress[0].fromEndpoints[0]',
    ],
    ['G9: a port that is no number', ingress(ports({ port: '80x-' })), 'spec.ingress[0].toPorts[0].ports[0]'],
    ['G10: a port above 65535', ingress(ports({ port: '70000' })), 'spec.ingress[0].toPorts[0].ports[0]'],
    ['G11: no port', ingress(ports({ protocol: 'TCP' })), 'spec.ingress[0].toPorts[0].ports[0]'],
    ['G12: a range that is none', ingress({ fromCIDR: ['10.0.0.0/33'] }), 'spec.ingress[0].fromCIDR[0]'],
    [
      'G13: a CIDRSet without length',
      ingress({ fromCIDRSet: [{ cidr: '10.0.0.1' }] }),
      'spec.ingress[0].fromCIDRSet[0].cidr',
    ],
    [
      'G14: an except outside',
      ingress({ fromCIDRSet: [{ cidr: '10.0.0.0/8', except: ['11.0.0.0/16'] }] }),
      'spec.ingress[0].fromCIDRSet[0].except[0]',
    ],
    [
      'G15: an except that is wider',
      ingress({ fromCIDRSet: [{ cidr: '10.0.0.0/16', except: ['10.0.0.0/8'] }] }),
      'spec.ingress[0].fromCIDRSet[0].except[0]',
    ],
    [
      'G16: http on UDP',
      ingress({ toPorts: [{ ports: [{ port: '80', protocol: 'UDP' }], ...http }] }),
      'spec.ingress[0].toPorts[0].ports[0]',
    ],
    [
      'G17: http without protocol',
      ingress({ toPorts: [{ ports: [{ port: '80' }], ...http }] }),
      'spec.ingress[0].toPorts[0].ports[0]',
    ],
    ['G18: http with port 0', ingress(tcp('0', http)), 'spec.ingress[0].toPorts[0].rules'],
    [
      'G19: dns on ingress',
      ingress({ toPorts: [{ ports: [{ port: '53' }], rules: { dns: [{ matchPattern: '*' }] } }] }),
      'spec.ingress[0].toPorts[0]',
    ],
    [
      'G20: dns with a range',
      egress({ toPorts: [{ ports: [{ port: '53', endPort: 60 }], rules: { dns: [{ matchPattern: '*' }] } }] }),
      'spec.egress[0].toPorts[0].ports[0]',
    ],
    [
      'G21: dns without ports',
      egress({ toPorts: [{ rules: { dns: [{ matchPattern: '*' }] } }] }),
      'spec.egress[0].toPorts[0].rules',
    ],
    [
      'G22: a listener on ingress',
      ingress(tcp('80', { listener: { name: 'l', envoyConfig: { name: 'c' } } })),
      'spec.ingress[0].toPorts[0]',
    ],
    [
      'G23: a listener beside http',
      egress(tcp('80', { listener: { name: 'l', envoyConfig: { name: 'c' } }, ...http })),
      'spec.egress[0].toPorts[0]',
    ],
    [
      'G24: serverNames beside http',
      egress(tcp('443', { serverNames: ['a.b'], ...http })),
      'spec.egress[0].toPorts[0]',
    ],
    [
      'G25: serverNames without TCP',
      egress({ toPorts: [{ ports: [{ port: '443' }], serverNames: ['a.b'] }] }),
      'spec.egress[0].toPorts[0].ports[0]',
    ],
    ['G26: http for a host', ccnp('p', { nodeSelector: {}, ingress: [tcp('80', http)] }), 'spec.ingress[0].toPorts[0]'],
  ])('%s', (_, policy, path) => {
    expect(found(policy)).toEqual([`policy.agent-refuses ${path}`])
  })

  test('G40: host bits, an octal port and a bare address are taken', () => {
    expect(found(ingress({ fromCIDR: ['10.1.2.3/8', '10.0.0.1'], ...ports({ port: '0777' }) }))).toEqual([])
  })

  test.each<[string, Raw, readonly CiliumVersion[]]>([
    ['V1: sections that are all empty', cnp('x/p', { ...all, ingress: [] }), ['1.17', '1.18', '1.19']],
    [
      'V2: toServices beside toPorts',
      egress({ toServices: [{ k8sService: { serviceName: 's' } }], ...ports({ port: '80' }) }),
      ['1.16'],
    ],
    ['V3: cidrGroupSelector', ingress({ fromCIDRSet: [{ cidrGroupSelector: {} }] }), ['1.16']],
    ['V4: fromRequires', ingress({ fromRequires: [{}] }), ['1.19']],
    [
      'V5: dns for a host',
      ccnp('p', {
        nodeSelector: {},
        egress: [{ toPorts: [{ ports: [{ port: '53' }], rules: { dns: [{ matchPattern: '*' }] } }] }],
      }),
      ['1.16', '1.17', '1.18'],
    ],
  ])('%s, by version', (_, policy, versions) => {
    const refusing = (['1.16', '1.17', '1.18', '1.19'] as const).filter(
      (version) => found(policy, { version }).length > 0,
    )
    expect(refusing).toEqual(versions)
  })
})

test('a refused policy enforces nothing', () => {
  const asked = askCilium([ingress({ fromEndpoints: [{}], fromEntities: ['world'] })])
  expect(asked.world.policies).toEqual([])
  expect(asked.findings.map(({ message }) => message).join()).toContain('so that nothing of it is enforced')
})
