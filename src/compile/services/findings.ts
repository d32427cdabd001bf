/** The finding codes of this room, with what each means. */
import type { Finding, FindingTable } from '#base/finding'
import { type Meta, refOf } from '#model/meta'

export const findingCodes = {
  'services.other-proxy': {
    severity: 'info',
    meaning: 'The label service.kubernetes.io/service-proxy-name gives a Service to another proxy: no rules.',
  },
  'services.headless-label': {
    severity: 'warning',
    meaning:
      'The label service.kubernetes.io/headless on a Service with a cluster IP hides it from kube-proxy: no rules.',
  },
  'services.hidden-slice': {
    severity: 'warning',
    meaning:
      'A slice carries a label that hides it from kube-proxy while its Service does not: its endpoints do not count.',
  },
  'services.headless-exposed': {
    severity: 'warning',
    meaning: 'A headless Service has external addresses or node ports; kube-proxy makes no rules for any of them.',
  },
  'services.no-cluster-ip': {
    severity: 'warning',
    meaning: 'A Service has no cluster IP yet, so kube-proxy passes it over.',
  },
  'services.address-without-family': {
    severity: 'warning',
    meaning: 'An external address is of a family in which the Service has no cluster IP: no rules for it.',
  },
  'services.port-name-mismatch': {
    severity: 'warning',
    meaning: 'No slice of the Service has a port of that name and protocol, though it has others: no endpoints.',
  },
  'services.port-replaced': {
    severity: 'warning',
    meaning: 'A later port of the Service has the same name and protocol; kube-proxy keeps that one alone.',
  },
  'services.slice-port-without-number': {
    severity: 'warning',
    meaning: 'A slice port has no name or no number; kube-proxy passes it over.',
  },
  'services.endpoint-of-other-family': {
    severity: 'warning',
    meaning: 'An endpoint address is not of the family that its slice states; kube-proxy passes it over.',
  },
  'services.hints-ignored': {
    severity: 'info',
    meaning:
      'Some ready endpoints have topology hints and others have none, or none is for this node: hints do not count.',
  },
  'services.no-health-check-port': {
    severity: 'warning',
    meaning: 'A LoadBalancer Service with externalTrafficPolicy Local has no healthCheckNodePort.',
  },
  'services.no-node': {
    severity: 'info',
    meaning: 'No node was named, so no endpoint counts as local and traffic policies Local find none.',
  },
  'services.node-port-addresses-unmatched': {
    severity: 'warning',
    meaning: 'nodePortAddresses select none of the addresses known of the node: node ports answer nowhere.',
  },
  'proxy-config.missing': {
    severity: 'warning',
    meaning: 'A ConfigMap holds no kube-proxy configuration (data key config.conf).',
  },
  'proxy-config.unreadable': {
    severity: 'error',
    meaning: 'The kube-proxy configuration is not YAML, or not a KubeProxyConfiguration; the defaults are used.',
  },
  'proxy-config.bad-value': {
    severity: 'warning',
    meaning: 'A field of the kube-proxy configuration has a value that it cannot have; its default is used.',
  },
  'proxy-config.unknown-mode': {
    severity: 'warning',
    meaning: 'The proxy mode is none that Portolan knows; iptables is assumed.',
  },
  'proxy-config.other-mode': {
    severity: 'warning',
    meaning: 'kube-proxy runs in another mode than the one rendered: its rules are not those that are shown.',
  },
} as const satisfies FindingTable

export type FindingCode = keyof typeof findingCodes

/** A finding about one object. */
export function findingAt(
  meta: Meta,
  code: FindingCode,
  told: { readonly message: string; readonly path?: string; readonly hint?: string },
): Finding {
  return { code, severity: findingCodes[code].severity, object: refOf(meta), origin: meta.origin, ...told }
}
