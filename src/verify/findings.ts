/** The finding codes of this room, with what each means. */
import type { Finding, FindingTable } from '#base/finding'

export const findingCodes = {
  'ruleset.ipvs': {
    severity: 'warning',
    meaning: 'kube-proxy runs in IPVS mode: Services and their targets are in ipvsadm and ipset, not in these rules.',
  },
  'ruleset.cilium': {
    severity: 'warning',
    meaning: 'Cilium replaces kube-proxy: Services are translated in BPF, not by these rules.',
  },
  'ruleset.other-variant': {
    severity: 'warning',
    meaning: 'The other iptables variant holds rules that this dump does not show.',
  },
  'ruleset.both-variants': {
    severity: 'warning',
    meaning: 'Both iptables variants hold Service rules; the kernel runs both.',
  },
  'trace.only-node': {
    severity: 'info',
    meaning: 'No node was named, and the input has one: its rules are meant.',
  },
  'trace.no-cluster-cidr': {
    severity: 'info',
    meaning: 'The range of pod addresses is not known: source translation by source cannot be told.',
  },
  'ruleset.no-kube-proxy': { severity: 'info', meaning: 'The dump holds no Service rules of kube-proxy.' },
  'ruleset.stale-chains': {
    severity: 'info',
    meaning: 'Service or endpoint chains to which no rule jumps; kube-proxy removes them later.',
  },
  'ruleset.stale-endpoint': {
    severity: 'warning',
    meaning:
      'A rule sends to an address that no EndpointSlice has: the dump is older than the slices, or kube-proxy does not sync.',
  },
} as const satisfies FindingTable

export function verifyFinding(code: keyof typeof findingCodes, message: string, hint?: string): Finding {
  const finding = { code, severity: findingCodes[code].severity, message }
  return hint === undefined ? finding : { ...finding, hint }
}
