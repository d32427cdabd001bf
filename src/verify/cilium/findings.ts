/** What differs between the maps of a real node and those that the objects imply. */
import type { Finding, FindingTable } from '#base/finding'

export const mapsDiffFindings = {
  'maps-diff.row-missing': {
    severity: 'error',
    meaning: 'The objects imply a row that a map of the node does not hold.',
  },
  'maps-diff.row-stale': {
    severity: 'error',
    meaning: 'A map of the node holds a row that nothing in the objects implies.',
  },
  'maps-diff.row-differs': {
    severity: 'error',
    meaning: 'A row of a node’s map says something else than the objects.',
  },
  'maps-diff.wrong-node': {
    severity: 'error',
    meaning: 'The ipcache sends traffic for an address to another node than the pod’s.',
  },
  'maps-diff.wrong-identity': {
    severity: 'error',
    meaning: 'An address has another identity on the node than its labels imply.',
  },
  'maps-diff.stale-backend': {
    severity: 'error',
    meaning: 'A Service of the node sends to a backend that is none of its endpoints.',
  },
  'maps-diff.backend-missing': {
    severity: 'error',
    meaning: 'A Service of the node lacks a backend that is one of its endpoints.',
  },
  'maps-diff.policy-missing': { severity: 'error', meaning: 'A policy map lacks an entry that a rule asks for.' },
  'maps-diff.policy-extra': { severity: 'error', meaning: 'A policy map holds an entry that no rule asks for.' },
  'maps-diff.egress-differs': {
    severity: 'error',
    meaning: 'The egress gateway map sends a pod’s traffic elsewhere than its policy says.',
  },
  'maps-diff.identity-unused': {
    severity: 'warning',
    meaning: 'The node knows an identity that no pod of the input has.',
  },
  'maps-diff.maglev-differs': {
    severity: 'error',
    meaning: 'A Maglev table of the node is another one than the endpoints of its Service imply.',
  },
  'maps-diff.ct-gone-pod': {
    severity: 'info',
    meaning: 'Connections are tracked of a pod address that no pod of the input has: they end by themselves.',
  },
  'maps-diff.ct-lost-backend': {
    severity: 'warning',
    meaning: 'A tracked connection to a Service keeps a backend that the node’s map of backends does not have.',
  },
  'maps-diff.ct-unknown-service': {
    severity: 'warning',
    meaning: 'A tracked connection names the reverse NAT of a Service that the node does not have.',
  },
  'maps-diff.nat-gone-pod': {
    severity: 'info',
    meaning: 'A source translation is of a pod address that no pod of the input has.',
  },
  'maps-diff.nat-foreign-address': {
    severity: 'error',
    meaning: 'A source is translated to an address that is not the node’s own.',
  },
  'maps-diff.nat-collision': {
    severity: 'error',
    meaning: 'Several connections have one translated address and port towards one destination.',
  },
  'maps-diff.nat-unpaired': {
    severity: 'warning',
    meaning: 'A source translation stands without its twin of the other direction.',
  },
  'maps-diff.nat-ports-scarce': {
    severity: 'warning',
    meaning: 'Most ports of an address towards one destination are taken by translations.',
  },
  'maps-diff.state-unread': {
    severity: 'warning',
    meaning: 'Rows of a dump of connections or translations cannot be read; the others are compared.',
  },
  'maps-diff.map-pressure': { severity: 'warning', meaning: 'A map of the node is nearly full.' },
  'maps-diff.other-node': {
    severity: 'error',
    meaning: 'The host’s addresses in a dump are those of another node than the one that it is compared with.',
  },
  'maps-diff.other-version': {
    severity: 'warning',
    meaning: 'A dump is laid out as another version of Cilium than the one asked for does.',
  },
} as const satisfies FindingTable

export type MapsDiffCode = keyof typeof mapsDiffFindings

export function diffFinding(code: MapsDiffCode, told: Omit<Finding, 'code' | 'severity'>): Finding {
  return { code, severity: mapsDiffFindings[code].severity, ...told }
}
