/** The finding codes of this room, with what each means. */
import type { FindingTable, ObjectRef } from '#base/finding'
import { type Meta, refOf } from '#model/meta'
import type { ExplainFinding } from './explanation'

export const findingCodes = {
  'explain.name-without-answer': {
    severity: 'error',
    meaning:
      'The name of the Service does not resolve, as that of a headless Service without ready endpoints; resolvers remember it.',
  },
  'explain.name-answer-differs': {
    severity: 'error',
    meaning: 'The name of a headless Service answers with other addresses than those of its ready pods.',
  },
  'explain.name-answers-not-ready': {
    severity: 'info',
    meaning: 'publishNotReadyAddresses lets a name answer with pods that are not ready.',
  },
  'explain.external-name-is-address': {
    severity: 'error',
    meaning: 'An externalName is an IP address, which is no name: it does not resolve.',
  },
  'explain.external-name-inside': {
    severity: 'info',
    meaning: 'An externalName lies in the zone of the cluster, so the cluster itself resolves it.',
  },
  'explain.external-name-unknown': {
    severity: 'error',
    meaning: 'An externalName lies in the zone of the cluster, where nothing has that name: it does not resolve.',
  },
  'explain.external-name-short': {
    severity: 'error',
    meaning: 'An externalName is a short name of a Service, which only a search list makes whole: it does not resolve.',
  },
  'explain.rules-incomplete': {
    severity: 'warning',
    meaning: 'The rules of a node were cut, or listed without what sets and maps hold: they are not compared.',
  },
  'explain.dns-without-endpoints': {
    severity: 'error',
    meaning: 'The DNS Service of the cluster has no ready endpoint, so no name of any Service is resolved.',
  },
  'explain.affinity-pinning': {
    severity: 'info',
    meaning: 'With ClientIP affinity a client stays with one endpoint, also when new endpoints come.',
  },
  'explain.affinity-per-port': {
    severity: 'info',
    meaning: 'Affinity is kept for each port of a Service apart: a client may reach different pods on two ports.',
  },
  'explain.no-endpoints': {
    severity: 'error',
    meaning: 'A port of the Service has no endpoint that takes new connections.',
  },
  'explain.only-terminating': {
    severity: 'warning',
    meaning: 'No endpoint is ready; terminating pods that still serve take the connections.',
  },
  'explain.terminating-endpoints': {
    severity: 'info',
    meaning: 'Terminating pods get no new connections, while those they have go on.',
  },
  'explain.slice-lacks-pod': {
    severity: 'error',
    meaning: 'A ready pod that the selector picks is in no EndpointSlice of the input.',
  },
  'explain.stale-slice': {
    severity: 'error',
    meaning: 'An EndpointSlice sends to an address that no pod of the Service implies, as after a change of labels.',
  },
  'explain.slice-differs': {
    severity: 'warning',
    meaning: 'An EndpointSlice of the input is not what the pods imply.',
  },
  'explain.empty-slice': {
    severity: 'error',
    meaning: 'A slice holds no endpoints or no ports though pods are there, as after a port was renamed.',
  },
  'explain.hints-incomplete': {
    severity: 'warning',
    meaning: 'One ready endpoint without topology hints turns the hints of all of them off.',
  },
  'explain.pod-not-ready': { severity: 'warning', meaning: 'Pods of the Service are not ready and get no traffic.' },
  'explain.target-port-in-no-pod': {
    severity: 'error',
    meaning: 'A named targetPort is on no pod of the Service with the right protocol: that port has no endpoints.',
  },
  'explain.target-port-in-some-pods': {
    severity: 'warning',
    meaning: 'A named targetPort is on some pods of the Service only; the others get no traffic on that port.',
  },
  'explain.target-port-undeclared': {
    severity: 'warning',
    meaning: 'A targetPort number is none of those that the containers declare: likely nothing listens there.',
  },
  'explain.no-rules': {
    severity: 'error',
    meaning: 'No rule of a node takes packets to an address of the Service; they leave by routing and time out.',
  },
  'explain.endpoint-missing-from-rules': {
    severity: 'error',
    meaning: 'A ready endpoint is not in the rules of a node: these are older than the slices.',
  },
  'explain.rule-to-no-endpoint': {
    severity: 'error',
    meaning: 'The rules of a node send to an address that no endpoint of the Service has.',
  },
  'explain.rule-to-foreign-pod': {
    severity: 'error',
    meaning: 'The rules of a node send to an address that a pod outside the Service has now.',
  },
  'explain.rule-to-unready-endpoint': {
    severity: 'error',
    meaning: 'The rules of a node send to an endpoint that takes no new connections.',
  },
  'explain.rule-to-other-endpoint': {
    severity: 'warning',
    meaning: 'The rules of a node send to a ready endpoint that its traffic policy or hints do not choose there.',
  },
  'explain.unequal-shares': {
    severity: 'error',
    meaning: 'The rules of a node do not spread connections evenly over the endpoints.',
  },
  'explain.cascade': {
    severity: 'info',
    meaning: 'The growing probabilities of a chain are each of what is left over: together they are equal shares.',
  },
  'explain.rules-stop-packets': {
    severity: 'error',
    meaning: 'A rule that is not kube-proxy’s answer to missing endpoints drops or rejects packets to the Service.',
  },
  'explain.partly-untranslated': {
    severity: 'error',
    meaning:
      'Part of the connections to the Service meet no rule that sends them on; they leave by routing and time out.',
  },
  'explain.no-refusal': {
    severity: 'warning',
    meaning:
      'Packets to a Service without endpoints are not rejected on their path, so clients wait instead of failing.',
  },
  'explain.affinity-differs': {
    severity: 'error',
    meaning: 'The rules of a node keep clients with their endpoint though the Service does not ask it, or the reverse.',
  },
  'explain.nodes-disagree': {
    severity: 'error',
    meaning: 'Nodes that should answer alike send the same packet to different endpoints.',
  },
  'explain.two-variants': {
    severity: 'warning',
    meaning: 'Both iptables variants of a node hold rules; the kernel runs both.',
  },
  'explain.undecided': {
    severity: 'warning',
    meaning: 'What the rules of a node do depends on something that the input does not tell.',
  },
  'explain.conntrack-dead-endpoint': {
    severity: 'error',
    meaning: 'A tracked connection still goes to an address that no endpoint of the Service has.',
  },
  'explain.conntrack-foreign-pod': {
    severity: 'error',
    meaning: 'A tracked connection still goes to an address that a pod outside the Service has now.',
  },
  'explain.conntrack-untranslated': {
    severity: 'error',
    meaning: 'A connection to the Service is tracked without translation: it began before the rules were there.',
  },
  'explain.conntrack-unreplied': {
    severity: 'warning',
    meaning: 'Connections to an endpoint were translated and never got an answer.',
  },
  'explain.conntrack-bad-line': {
    severity: 'warning',
    meaning: 'A line of a connection tracking table cannot be read; it is left out.',
  },
  'explain.affinity-skew': {
    severity: 'warning',
    meaning: 'Affinity keeps most tracked clients on few of the endpoints.',
  },
  'explain.policy-denies-all': {
    severity: 'error',
    meaning: 'Network policies let nobody reach a port of the Service: every connection to it is dropped.',
  },
  'explain.policy-backends-differ': {
    severity: 'warning',
    meaning:
      'Network policies let a client reach some backends of a Service and not others: part of its connections is dropped.',
  },
  'explain.policy-undecided': {
    severity: 'warning',
    meaning: 'Whether a client may reach a port of the Service depends on something that the input does not tell.',
  },
  'explain.no-local-endpoint': {
    severity: 'error',
    meaning: 'Traffic policy Local drops packets on nodes that have no endpoint of the Service.',
  },
  'explain.local-nodes': {
    severity: 'info',
    meaning: 'Nodes without endpoint fail the health check of the load balancer, which then leaves them out.',
  },
  'explain.answers-differ-by-source': {
    severity: 'warning',
    meaning: 'The same address answers a pod, the node itself and a client outside differently.',
  },
  'explain.node-port-shadows-host': {
    severity: 'warning',
    meaning: 'A node port without endpoints rejects packets also where a program of the node listens on that port.',
  },
  'explain.client-address-lost': {
    severity: 'info',
    meaning:
      'Clients outside are seen with the address of a node, as externalTrafficPolicy Cluster translates the source.',
  },
  'explain.masquerade-differs': {
    severity: 'error',
    meaning: 'The rules of a node translate the source where they should not, or do not where they should.',
  },
  'explain.hairpin-not-masqueraded': {
    severity: 'error',
    meaning:
      'A pod that reaches itself through its Service keeps its address, so the answer never comes back through the node.',
  },
} as const satisfies FindingTable

export type FindingCode = keyof typeof findingCodes

export type Told = {
  readonly about: Meta | ObjectRef
  readonly message: string
  readonly path?: string
  readonly evidence: readonly string[]
  /** The remedy. */
  readonly hint: string
}

/** A finding about one object, with what shows it and what to do. */
export function explainFinding(code: FindingCode, { about, ...told }: Told): ExplainFinding {
  const { severity } = findingCodes[code]
  if (!('labels' in about)) return { code, severity, object: about, ...told }
  return { code, severity, object: refOf(about), origin: about.origin, ...told }
}
