/** Every finding about the maps of a node: its code, how bad it is, and what it means. */
import type { Finding, FindingTable } from '#base/finding'

export const mapsFindings = {
  'maps.no-config': {
    severity: 'info',
    meaning: 'The input has no ConfigMap cilium-config, so that Cilium’s settings are assumed.',
  },
  'maps.bad-config': {
    severity: 'error',
    meaning: 'cilium-config has a value with which the agent does not start; the default is taken.',
  },
  'maps.old-config': {
    severity: 'warning',
    meaning: 'cilium-config has an option that the agent no longer knows, so that it does nothing.',
  },
  'maps.pod-without-identity': {
    severity: 'warning',
    meaning: 'A pod has an address and no identity of Cilium’s, so that no map knows it.',
  },
  'maps.node-unknown': {
    severity: 'warning',
    meaning: 'The node of a pod is not in the input, so that nothing tells where its traffic goes.',
  },
  'maps.policy-map-full': {
    severity: 'error',
    meaning: 'The policies of an endpoint want more entries than its map holds.',
  },
  'maps.policy-open': {
    severity: 'info',
    meaning: 'What a rule of a policy selects is not in the input, so that its entries are left out of policy maps.',
  },
  'maps.no-backends': { severity: 'warning', meaning: 'A port of a Service has no backends.' },
  'maps.feature-off': {
    severity: 'warning',
    meaning: 'A policy is of a kind that cilium-config switches off, so that it does nothing.',
  },
  'maps.egress-invalid': {
    severity: 'error',
    meaning: 'The agent refuses an egress gateway policy, so that no row comes of it.',
  },
  'maps.egress-no-gateway': {
    severity: 'error',
    meaning: 'An egress gateway policy selects no node, so that the traffic it selects is dropped.',
  },
  'maps.egress-address': {
    severity: 'warning',
    meaning: 'The gateway of an egress policy does not have the address that it is to lend, or nothing tells it.',
  },
  'maps.egress-twice': {
    severity: 'warning',
    meaning: 'Two egress gateway policies select the same pod and range; one of them has no effect.',
  },
  'maps.pod-ranges-overlap': { severity: 'error', meaning: 'Pod ranges of two nodes overlap.' },
  'maps.dump-unknown': { severity: 'info', meaning: 'A file of a dump is the output of no command that is compared.' },
  'maps.dump-not-compared': {
    severity: 'info',
    meaning: 'A map of a dump is not compared, as no object tells what it holds.',
  },
  'maps.dump-bad-row': { severity: 'warning', meaning: 'Rows of a dump cannot be read; the others are compared.' },
  'maps.dump-cut': {
    severity: 'warning',
    meaning: 'A dump ends in the middle; what it holds is compared, and nothing is called missing.',
  },
  'maps.redirect-without-service': {
    severity: 'warning',
    meaning: 'A local redirect policy names a Service that is not in the input.',
  },
} as const satisfies FindingTable

export type MapsFindingCode = keyof typeof mapsFindings

export function mapsFinding(code: MapsFindingCode, told: Omit<Finding, 'code' | 'severity'>): Finding {
  return { code, severity: mapsFindings[code].severity, ...told }
}
