/** The stops of `portolan demo`: what is shown, and what a person should see in it. */

export type Stop = {
  readonly title: string
  readonly tale: string
  /** A command line; `SAMPLE` stands for the sample cluster, `RULES` for a node's rules. */
  readonly command: string
  /** Which lines of the output to show; all when left out. */
  readonly only?: RegExp
}

export const clusterCidr = '10.244.0.0/16'

export const tour: readonly Stop[] = [
  {
    title: 'Which endpoints does a Service have?',
    tale: 'EndpointSlices are computed from the pods, as the controller does it. The canary is not ready: it is listed, and gets no traffic.',
    command: 'endpoints shop/web --from SAMPLE',
  },
  {
    title: 'One Service, two port numbers',
    tale: 'Version 2 of catalog listens on another port. The targetPort is a name, so each version gets a slice with its own number.',
    command: 'endpoints shop/catalog --from SAMPLE',
  },
  {
    title: 'Which rules does kube-proxy write for it?',
    tale: 'The lines for web on node-b. The whole text is what iptables-save prints on that node, byte for byte.',
    command: `iptables --from SAMPLE --node node-b --cluster-cidr ${clusterCidr}`,
    only: /"shop\/web:/,
  },
  {
    title: 'Where does a packet to its ClusterIP go?',
    tale: 'The same rules, walked hook by hook. Nothing is said of the source, so what depends on it is told as a condition.',
    command: 'trace --ruleset RULES --to 10.96.0.20:80',
  },
  {
    title: 'And a packet to a Service without endpoints?',
    tale: 'The selector of empty matches no pod: kube-proxy has its packets rejected, in the filter table.',
    command: 'trace --ruleset RULES --to 10.96.0.40:80',
  },
  {
    title: 'A node port that keeps traffic on its node',
    tale: 'checkout has externalTrafficPolicy Local: a client outside reaches the pod on this node and keeps its own address.',
    command: 'trace --ruleset RULES --to 172.18.0.3:30080 --node-local',
  },
  {
    title: 'Everything at once',
    tale: 'Any iptables-save, explained: each destination, where it goes, in which shares, and what is odd.',
    command: 'trace --ruleset RULES --all',
  },
]
