/** Masquerade and traffic policy: what each class of clients gets at each address on each node. */
import { compareText, listOf } from '#base/text'
import type { ServicePortPlan } from '#compile/services/service-plan'
import { answersShown, type NodeAnswers } from './answer-nodes'
import { sourceWords } from './choose-sources'
import { isEarlyDrop } from './compare-rules'
import { compareSource } from './compare-source'
import { targetsText } from './explain-rules'
import { type ExplainFinding, type Layer, type LayerTable, layerOf } from './explanation'
import { explainFinding } from './findings'
import { isExternal, printDestination } from './list-destinations'
import type { ServiceView } from './service-view'
import { type Answer, masqueradeOf, outcomeText } from './trace-node'

export function explainTraffic(view: ServiceView, nodes: readonly NodeAnswers[]): Layer {
  const answers = nodes.flatMap(answersShown)
  if (answers.length === 0) {
    return { layer: 'traffic-policy', status: 'skipped', facts: ['no rules to look at'], findings: [] }
  }
  return layerOf('traffic-policy', {
    facts: factsOf(view, nodes),
    table: tableOf(nodes),
    findings: [
      ...noLocalEndpoint(view, nodes),
      ...differBySource(view, nodes),
      ...shadowedHosts(view, nodes),
      ...nodes.flatMap((one) => compareSource(view, one)),
      ...clientAddressLost(view, nodes),
    ],
  })
}

function factsOf({ service }: ServiceView, nodes: readonly NodeAnswers[]): readonly string[] {
  const { externalTrafficPolicy, internalTrafficPolicy } = service
  const isExposed = nodes.some(({ destinations }) => destinations.some(isExternal))
  const hasDetector = nodes.some(({ plan }) => plan.localTraffic !== undefined)
  const isGiven = nodes.some(({ given }) => given !== undefined)
  return [
    `internalTrafficPolicy ${internalTrafficPolicy}${isExposed ? `, externalTrafficPolicy ${externalTrafficPolicy}` : ''}`,
    ...(hasDetector || isGiven
      ? []
      : ['the range of pod addresses is not known (--cluster-cidr): rules that tell pods from others are left out']),
    ...(isGiven ? ['a pod that reaches itself also needs the bridge’s hairpin mode, which is in no ruleset'] : []),
  ]
}

const addressWords = { always: 'the node’s', never: 'kept', some: 'depends' } as const

/** Classes of clients that fare alike share a row. */
function tableOf(nodes: readonly NodeAnswers[]): LayerTable {
  const rows = nodes.flatMap((one) => {
    const merged = new Map<string, { readonly cells: readonly string[]; readonly from: string[] }>()
    for (const answer of answersShown(one)) {
      const { destination, trace, from } = answer
      const client = trace.targets.length === 0 ? '' : addressWords[masqueradeOf(answer)]
      const cells = [printDestination(destination), trace.verdict.kind, targetsText(answer), client]
      const row = merged.get(cells.join('\n'))
      if (row === undefined) merged.set(cells.join('\n'), { cells, from: [sourceWords[from]] })
      else row.from.push(sourceWords[from])
    }
    return [...merged.values()].map(({ cells: [to = '', ...rest], from }) => [
      one.node ?? one.label,
      to,
      listOf(from),
      ...rest,
    ])
  })
  return { columns: ['NODE', 'SENT TO', 'FROM', 'VERDICT', 'GOES TO', 'CLIENT ADDRESS'], rows }
}

/** A port whose policy Local finds nobody on the node while there are endpoints elsewhere. */
function lacksLocal(plan: ServicePortPlan, answer: Answer): boolean {
  if (answer.destination.servicePort !== plan.servicePort || !plan.chosen.hasAny) return false
  if (isExternal(answer.destination)) {
    return answer.from === 'outside' && plan.isExternalLocal && plan.isExternallyAccessible && !plan.hasExternal
  }
  return answer.from === 'pod' && plan.isInternalLocal && !plan.hasInternal
}

type Lacking = { readonly one: NodeAnswers; readonly answer: Answer }

function noLocalEndpoint(view: ServiceView, nodes: readonly NodeAnswers[]): readonly ExplainFinding[] {
  const { service } = view
  const lacking = nodes.flatMap((one): readonly Lacking[] =>
    one.node === undefined
      ? []
      : answersShown(one)
          .filter((answer) => one.plan.ports.some((plan) => lacksLocal(plan, answer)))
          .map((answer) => ({ one, answer })),
  )
  const isChecked = service.type === 'LoadBalancer' && service.healthCheckNodePort !== 0
  const isExcused = ({ answer }: Lacking): boolean =>
    isChecked && answer.destination.kind !== 'cluster IP' && answer.destination.kind !== 'external IP'
  const excused = lacking.filter(isExcused)
  const wrong = lacking.filter((one) => !isExcused(one))
  const external = wrong.filter(({ answer }) => isExternal(answer.destination))
  const internal = wrong.filter(({ answer }) => !isExternal(answer.destination))
  return [
    ...localFinding(view, nodes, { lacking: internal, path: 'spec.internalTrafficPolicy' }),
    ...localFinding(view, nodes, { lacking: external, path: 'spec.externalTrafficPolicy' }),
    ...healthChecked(view, excused),
  ]
}

function nodesOf(lacking: readonly Lacking[]): readonly string[] {
  return [...new Set(lacking.flatMap(({ one }) => [one.label, ...one.alike]))].sort(compareText)
}

function evidenceOf(lacking: readonly Lacking[]): readonly string[] {
  return lacking.slice(0, 10).map(({ one, answer }) => {
    const to = printDestination(answer.destination)
    return `${one.label}: ${to} from ${sourceWords[answer.from]}: ${outcomeText(answer)}`
  })
}

function localFinding(
  { service }: ServiceView,
  nodes: readonly NodeAnswers[],
  { lacking, path }: { readonly lacking: readonly Lacking[]; readonly path: string },
): readonly ExplainFinding[] {
  if (lacking.length === 0) return []
  const without = nodesOf(lacking)
  const endpoints = nodes[0]?.plan.ports.flatMap((port) => port.endpoints) ?? []
  const places = endpoints.filter(({ isReady }) => isReady).map(({ endpoint }) => endpoint.nodeName)
  const homes = [...new Set(places.map((name) => name ?? 'a node that the slices do not name'))].sort(compareText)
  const field = path.replace('spec.', '')
  const who = field === 'externalTrafficPolicy' ? 'clients outside that use' : 'pods on'
  return [
    explainFinding('explain.no-local-endpoint', {
      about: service.meta,
      path,
      message: `${who} ${listOf(without, 6)} time out: ${field} is Local, and no ready endpoint runs there, only on ${listOf(homes, 4)}`,
      evidence: evidenceOf(lacking),
      hint: `send clients to ${listOf(homes, 3)}, run a pod on every node (a DaemonSet), or set ${field}: Cluster`,
    }),
  ]
}

function healthChecked({ service }: ServiceView, excused: readonly Lacking[]): readonly ExplainFinding[] {
  if (excused.length === 0) return []
  return [
    explainFinding('explain.local-nodes', {
      about: service.meta,
      path: 'spec.externalTrafficPolicy',
      message: `${listOf(nodesOf(excused), 6)} has no endpoint and drops what comes from outside; the load balancer should leave it out, as health check port ${service.healthCheckNodePort} says`,
      evidence: evidenceOf(excused),
      hint: 'see that the load balancer asks the health check port; clients that use the node’s own address time out',
    }),
  ]
}

/** Where one address has several verdicts, who asks decides. */
function differBySource({ service }: ServiceView, nodes: readonly NodeAnswers[]): readonly ExplainFinding[] {
  const differing = nodes.flatMap((one) =>
    one.destinations.flatMap((destination) => {
      const answers = answersShown(one).filter((answer) => answer.destination === destination)
      // What is open differs from nothing.
      const kinds = new Set(answers.map(({ trace }) => trace.verdict.kind).filter((kind) => kind !== 'unknown'))
      return kinds.size < 2 ? [] : [{ one, destination, answers }]
    }),
  )
  const [first] = differing
  if (first === undefined) return []
  const words = first.answers.map(({ from, trace }) => `${sourceWords[from]} is ${trace.verdict.kind}`)
  return [
    explainFinding('explain.answers-differ-by-source', {
      about: service.meta,
      message: `${printDestination(first.destination)} on ${first.one.label} answers by who asks: ${listOf(words)}`,
      evidence: differing
        .slice(0, 5)
        .flatMap(({ one, destination, answers }) =>
          answers.map(
            (answer) =>
              `${one.label}: ${printDestination(destination)} from ${sourceWords[answer.from]}: ${outcomeText(answer)}`,
          ),
        ),
      hint: differing.some(({ one, answers }) => answers.some((answer) => isEarlyDrop(one, answer)))
        ? 'kube-proxy 1.31 in nftables mode drops what the node itself sends there, before it translates; later ones do not: upgrade kube-proxy'
        : 'test from where the clients are: what somebody else gets says little',
    }),
  ]
}

/** kube-proxy's refusal stands before the socket: a program that listens on the node is not reached either. */
function shadowedHosts(view: ServiceView, nodes: readonly NodeAnswers[]): readonly ExplainFinding[] {
  const { service, input } = view
  return service.ports.flatMap((port, at) => {
    if (port.nodePort === 0) return []
    const stopped = nodes.flatMap((one) =>
      one.expected
        .filter(
          ({ destination, from }) =>
            destination.kind === 'node port' && destination.servicePort === port && from === 'outside',
        )
        .filter(({ trace }) => trace.verdict.kind === 'rejected' || trace.verdict.kind === 'dropped')
        .map((answer) => ({ one, answer })),
    )
    const hosts = [...input.cluster.pods.values()].filter((pod) =>
      pod.containers.some(({ ports }) =>
        ports.some(
          (one) =>
            one.protocol === port.protocol &&
            (one.hostPort === port.nodePort || (pod.hostNetwork && one.containerPort === port.nodePort)),
        ),
      ),
    )
    const isRefused = stopped.some(({ answer }) => answer.trace.verdict.kind === 'rejected')
    if (stopped.length === 0 || (!isRefused && hosts.length === 0)) return []
    const names = hosts.map((pod) => `pod ${pod.meta.namespace}/${pod.meta.name} on ${pod.nodeName ?? 'no node'}`)
    const host = names.length === 0 ? 'a program that listens on that port of a node' : listOf(names, 5)
    return [
      explainFinding('explain.node-port-shadows-host', {
        about: service.meta,
        path: `spec.ports[${at}].nodePort`,
        message: `node port ${port.nodePort} belongs to ${view.key}, which has no endpoint to send to: ${host} is not reached from outside either`,
        evidence: [...names, ...evidenceOf(stopped)],
        hint: 'choose another node port, delete the Service, or give it endpoints',
      }),
    ]
  })
}

function clientAddressLost({ service }: ServiceView, nodes: readonly NodeAnswers[]): readonly ExplainFinding[] {
  const lost = nodes.flatMap((one) =>
    answersShown(one)
      .filter(
        (answer) => answer.from === 'outside' && isExternal(answer.destination) && masqueradeOf(answer) === 'always',
      )
      .map((answer) => ({ one, answer })),
  )
  const [first] = lost
  if (first === undefined || service.externalTrafficPolicy === 'Local') return []
  const places = [...new Set(lost.map(({ answer }) => printDestination(answer.destination)))]
  const rule = first.answer.trace.masquerade[0]?.rule ?? ''
  return [
    explainFinding('explain.client-address-lost', {
      about: service.meta,
      path: 'spec.externalTrafficPolicy',
      message: `pods see the address of a node in place of the client’s at ${listOf(places, 4)}`,
      evidence: [
        `${first.one.label}: ${printDestination(first.answer.destination)} from outside: source translated by ${rule}`,
      ],
      hint: 'externalTrafficPolicy: Local keeps it, and then only nodes with an endpoint answer',
    }),
  ]
}
