/** The rule for the cluster's DNS, where it is asked for: over UDP and over TCP, at the port that its pods have. */
import { dnsPort } from '#flows/identify-peer'
import type { TargetRules } from './collect-rules'
import { rulesOfPeer } from './peer-rules'
import { addRule, type RuleNews } from './rule-draft'
import type { Surroundings } from './select-pods'

const usual = { namespace: 'kube-system', labels: { 'k8s-app': 'kube-dns' } } as const

/** The DNS itself is not its own client. */
export function allowDns(surroundings: Surroundings, all: readonly TargetRules[]): void {
  const rules = rulesForDns(surroundings)
  for (const { target, egress } of all) {
    const { matchLabels } = target.selector
    if (target.namespace === usual.namespace && matchLabels['k8s-app'] === usual.labels['k8s-app']) continue
    for (const rule of rules) addRule(egress, rule)
  }
}

function rulesForDns(surroundings: Surroundings): readonly RuleNews[] {
  const services = surroundings.index.servicesByName.get('kube-system/kube-dns') ?? []
  const service = services.find(({ selector }) => selector !== null && Object.keys(selector).length > 0)
  return (['UDP', 'TCP'] as const).flatMap((protocol): readonly RuleNews[] => {
    if (service === undefined) {
      const peer = { kind: 'pods', ...usual, without: [] } as const
      return [{ peer, ports: [{ protocol, port: dnsPort }], time: 0, isOwn: true }]
    }
    const { namespace, name, selector } = service
    const identity = {
      kind: 'service',
      address: service.addresses[0] ?? '',
      namespace,
      name,
      service,
      selector,
    } as const
    const found = rulesOfPeer(surroundings, identity, { isEgress: true, protocol, port: dnsPort })
    return found.map((rule) => ({ ...rule, time: 0, isOwn: true }))
  })
}
