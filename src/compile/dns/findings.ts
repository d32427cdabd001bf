/** The finding codes of this room, with what each means. */
import type { Finding, FindingTable, ObjectRef, Origin } from '#base/finding'

export const findingCodes = {
  'dns.no-corefile': {
    severity: 'info',
    meaning: 'The input has no ConfigMap kube-system/coredns; the kubernetes plugin’s own defaults are taken.',
  },
  'dns.corefile-broken': {
    severity: 'error',
    meaning: 'The Corefile has a mistake that CoreDNS refuses to start with.',
  },
  'dns.import-missing': {
    severity: 'info',
    meaning: 'The Corefile imports text that the input does not hold; it is taken to be empty.',
  },
  'dns.environment-unknown': {
    severity: 'warning',
    meaning: 'The Corefile takes an environment variable, whose value the input does not tell.',
  },
  'dns.bad-option': {
    severity: 'warning',
    meaning: 'A plugin has an option or a value that CoreDNS does not know; it is left out.',
  },
  'dns.unknown-plugin': {
    severity: 'warning',
    meaning: 'A plugin that Portolan does not know may answer first, so answers are unknown.',
  },
  'dns.no-kubernetes-plugin': {
    severity: 'warning',
    meaning: 'No server block of the Corefile has the kubernetes plugin, so cluster names are not served.',
  },
  'dns.file-unknown': {
    severity: 'info',
    meaning: 'A plugin reads a file that the input does not hold; it is taken to be empty.',
  },
  'dns.autopath-without-pods': {
    severity: 'warning',
    meaning: 'autopath @kubernetes does nothing, because the kubernetes plugin does not say pods verified.',
  },
  'dns.cluster-domain-differs': {
    severity: 'warning',
    meaning: 'The cluster domain of the search list is not a zone that CoreDNS serves, so short names do not resolve.',
  },
  'dns.cluster-domain-assumed': {
    severity: 'info',
    meaning: 'No cluster domain was given; the zone of the Corefile is taken for it.',
  },
  'dns.cluster-dns-assumed': {
    severity: 'info',
    meaning: 'Neither the input nor the command line tells the address of the cluster DNS; the usual one is taken.',
  },
  'dns.no-such-service': {
    severity: 'warning',
    meaning: 'A name that looks like a Service of this cluster is none, and goes to a nameserver outside.',
  },
  'dns.search-limits': {
    severity: 'warning',
    meaning: 'The kubelet cuts the search list: 32 domains, 2048 characters, 253 characters a domain.',
  },
  'dns.nameserver-limits': {
    severity: 'warning',
    meaning: 'The kubelet keeps the first three nameservers and leaves out the rest.',
  },
  'dns.missing-cluster-dns': {
    severity: 'warning',
    meaning: 'The kubelet knows no cluster DNS address, so dnsPolicy ClusterFirst falls back to Default.',
  },
  'dns.no-nameserver': {
    severity: 'warning',
    meaning: 'A pod with dnsPolicy None names no nameserver, which the API server refuses; it would resolve nothing.',
  },
  'dns.bad-policy': {
    severity: 'warning',
    meaning: 'A dnsPolicy that Kubernetes does not know; the kubelet takes it for ClusterFirst.',
  },
  'dns.node-resolv-conf': {
    severity: 'warning',
    meaning: 'The node’s resolv.conf has a line that the kubelet refuses.',
  },
  'dns.search-line-ignored': {
    severity: 'warning',
    meaning: 'musl ignores a search line of 255 or more characters, so no search list applies.',
  },
  'dns.not-cluster-dns': {
    severity: 'warning',
    meaning: 'The pod does not ask the cluster’s DNS, so it knows no cluster names.',
  },
  'dns.mixed-nameservers': {
    severity: 'warning',
    meaning: 'The pod asks the cluster’s DNS and others; which of them answers is a matter of order or of chance.',
  },
} as const satisfies FindingTable

export type DnsFindingCode = keyof typeof findingCodes

type Told = {
  readonly message: string
  readonly origin?: Origin
  readonly object?: ObjectRef
  readonly path?: string
  readonly hint?: string
}

export function dnsFinding(code: DnsFindingCode, told: Told): Finding {
  return { code, severity: findingCodes[code].severity, ...told }
}

/** A finding about the Corefile. */
export function corefileFinding(code: DnsFindingCode, told: Told): Finding {
  return dnsFinding(code, { object: { kind: 'ConfigMap', namespace: 'kube-system', name: 'coredns' }, ...told })
}
