/** The stops of `portolan demo`: what is shown, and what a person should see in it. */
import { day, unattributedAddress, unattributedAt } from './demo-day'

export type Stop = {
  readonly title: string
  readonly tale: string
  /**
   * A command line; `SAMPLE` stands for the sample cluster, `RULES` for a node's rules, `URL` for the broker's, `TIGHTER` for a
   * proposed policy.
   */
  readonly command: string
  /** Which lines of the output to show; all when left out. */
  readonly only?: RegExp
  /** What the command says on standard error is shown, too. */
  readonly showsNotes?: true
  /** Lines that stand out on a terminal. */
  readonly marks?: RegExp
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
    showsNotes: true,
  },
  {
    title: 'And a packet to a Service without endpoints?',
    tale: 'The selector of empty matches no pod: kube-proxy has its packets rejected, in the filter table.',
    command: 'trace --ruleset RULES --to 10.96.0.40:80',
    showsNotes: true,
  },
  {
    title: 'A node port that keeps traffic on its node',
    tale: 'checkout has externalTrafficPolicy Local: a client outside reaches the pod on this node and keeps its own address.',
    command: 'trace --ruleset RULES --to 172.18.0.3:30080 --node-local',
    showsNotes: true,
  },
  {
    title: 'Everything at once',
    tale: 'Any iptables-save, explained: each destination, where it goes, in which shares, and what is odd.',
    command: 'trace --ruleset RULES --all',
    showsNotes: true,
  },
]

export const recordedTour: readonly Stop[] = [
  {
    title: 'Who was it that nobody reported?',
    tale: `At ${unattributedAt.slice(11, 19)} something connected to the database three times. A client got its address 88 s later,
and cannot have been it: the broker says so, and names nobody.`,
    command: `who ${unattributedAddress} --at ${unattributedAt} --broker URL`,
  },
  {
    title: 'One address, two workloads',
    tale: `Addresses are used again. This one was a backup's now and then, and is a report's since 16:00:
each connection keeps the name of who had the address at its time.`,
    command: 'flows --ip 10.244.1.31 --to-workload db --direction ingress --limit 4 --broker URL',
  },
  {
    title: 'Which policy does the database need?',
    tale: `One that allows what was seen. A workload is named by labels that outlive a roll-out. A pod with the
address of its node is an address, as no selector matches it. What nobody knows is an address with a
comment and never a name: today its name would be the client's, and the client was dropped.`,
    command: 'generate networkpolicy shop/db --broker URL',
    showsNotes: true,
    marks: /^ *#|cidr: 10\.244\./,
  },
  {
    title: 'And a tighter one?',
    tale: `This one opens the database to the shop alone. Before it touches the present it is tried on the past:
these connections of ${day} it would have denied.`,
    command: 'policy audit --policies TIGHTER --broker URL',
    showsNotes: true,
    marks: /^ {2}\S.*: \d+ flows?/,
  },
]
