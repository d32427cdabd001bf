/** The pods behind the Service: are they ready, and do they have the ports that it names. */
import { compareText, countOf, listOf } from '#base/text'
import { explainMissingPort, resolvePorts } from '#compile/endpointslices/resolve-ports'
import type { Pod } from '#model/pod'
import type { ServicePort } from '#model/service'
import { adoptFinding } from './adopt-finding'
import { type ExplainFinding, type Layer, type LayerTable, layerOf } from './explanation'
import { explainFinding } from './findings'
import { placeFinding } from './place-finding'
import type { ServiceView } from './service-view'

export function explainPods(view: ServiceView): Layer {
  const { service, pods, input } = view
  const skipped = (fact: string): Layer => ({ layer: 'pods', status: 'skipped', facts: [fact], findings: [] })
  if (service.type === 'ExternalName') return skipped('an ExternalName Service has none')
  if (service.selector === undefined) return skipped('it has no selector: which pods serve is for its slices to say')
  const told = view.findings.filter((finding) => placeFinding(finding) === 'pods')
  if (input.cluster.pods.size === 0) {
    const isOpen = view.slices.given.length === 0
    if (!isOpen) return skipped('the input holds no pods; add the output of kubectl get pods -A')
    return layerOf('pods', { facts: ['the input holds no pods'], findings: told.map((one) => adoptFinding(one)) })
  }
  return layerOf('pods', {
    facts: factsOf(view),
    table: tableOf(pods),
    findings: [...notReady(view), ...portFindings(view), ...told.map((finding) => adoptFinding(finding))],
  })
}

function factsOf({ pods }: ServiceView): readonly string[] {
  const ready = pods.filter((pod) => pod.isReady).length
  const gone = pods.filter(isFinished).length
  return [`${countOf(pods.length, 'pod')} selected, ${ready} ready${gone === 0 ? '' : `, ${gone} finished`}`]
}

function isFinished({ phase }: Pod): boolean {
  return phase === 'Succeeded' || phase === 'Failed'
}

function tableOf(pods: readonly Pod[]): LayerTable {
  const rows = pods.map((pod) => [
    pod.meta.name,
    listOf(pod.podIPs) || '<none>',
    pod.nodeName ?? '<none>',
    pod.meta.deletionTimestamp === undefined ? pod.phase : 'Terminating',
    String(pod.isReady),
    portsOf(pod).join(',') || '<none>',
  ])
  return { columns: ['POD', 'ADDRESS', 'NODE', 'PHASE', 'READY', 'CONTAINER PORTS'], rows }
}

/** Ports of containers and of sidecars, which a targetPort may name. */
function portsOf({ containers, initContainers }: Pod): readonly string[] {
  const running = [...containers, ...initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always')]
  return running.flatMap(({ ports }) =>
    ports.map(
      ({ name, containerPort, protocol }) => `${name === undefined ? '' : `${name}:`}${containerPort}/${protocol}`,
    ),
  )
}

/** Terminating pods are told with the slices: they are on their way out. */
function notReady({ service, pods }: ServiceView): readonly ExplainFinding[] {
  const unready = pods.filter((pod) => !pod.isReady && !isFinished(pod) && pod.meta.deletionTimestamp === undefined)
  const [first] = unready
  if (first === undefined || service.publishNotReadyAddresses) return []
  return [
    explainFinding('explain.pod-not-ready', {
      about: unready.length === 1 ? first.meta : service.meta,
      path: 'status.conditions',
      message: `${countOf(unready.length, 'pod is', 'pods are')} not ready and ${unready.length === 1 ? 'gets' : 'get'} no traffic: ${listOf(unready.map(({ meta }) => meta.name))}`,
      evidence: unready
        .slice(0, 10)
        .map((pod) => `pod ${pod.meta.name} (${listOf(pod.podIPs) || 'no address'}): phase ${pod.phase}, not ready`),
      hint: 'kubectl describe pod tells which probe fails',
    }),
  ]
}

function portFindings(view: ServiceView): readonly ExplainFinding[] {
  const live = view.pods.filter((pod) => !isFinished(pod))
  if (live.length === 0) return []
  return view.service.ports.flatMap((port, at) =>
    typeof port.targetPort === 'string' ? namedPort(view, live, at) : undeclaredPort(view, live, at),
  )
}

function namedPort({ service }: ServiceView, live: readonly Pod[], at: number): readonly ExplainFinding[] {
  const port = service.ports[at]
  if (port === undefined) return []
  const lacking = live.filter((pod) => resolvePorts(service, pod)[at] === undefined)
  if (lacking.length === 0) return []
  const names = listOf(lacking.map(({ meta }) => meta.name))
  const evidence = whyLacking(lacking, port)
  const wanted = `${port.targetPort} (${port.protocol})`
  const about = service.meta
  const path = `spec.ports[${at}].targetPort`
  const isNone = lacking.length === live.length
  const hint = `add a container port named "${port.targetPort}" with protocol ${port.protocol}, or use the number as targetPort`
  if (isNone) {
    const message = `targetPort ${wanted} resolves in no pod (${names}): port ${port.port} has no endpoints`
    return [explainFinding('explain.target-port-in-no-pod', { about, path, message, evidence, hint })]
  }
  const found = live.filter((pod) => !lacking.includes(pod))
  const message = `targetPort ${wanted} resolves in ${listOf(found.map(({ meta }) => meta.name))} but not in ${names}, which get no traffic on port ${port.port}`
  return [explainFinding('explain.target-port-in-some-pods', { about, path, message, evidence, hint })]
}

/** Pods with the same reason in one line. */
function whyLacking(pods: readonly Pod[], port: ServicePort): readonly string[] {
  const byReason = new Map<string, string[]>()
  for (const pod of pods) {
    const declared = portsOf(pod)
    const reason = `${explainMissingPort(pod, port)} (declared: ${listOf(declared) || 'none'})`
    const names = byReason.get(reason) ?? []
    names.push(pod.meta.name)
    byReason.set(reason, names)
  }
  return [...byReason].map(([reason, names]) => `${countOf(names.length, 'pod')} ${listOf(names)}: ${reason}`)
}

/** What lists the sockets that take a protocol. */
const listeners: Readonly<Record<string, string>> = { TCP: 'ss -ltn', UDP: 'ss -lun', SCTP: 'ss -lSn' }

/** A containerPort is information only, but a number that no container declares among others is most often a slip. */
function undeclaredPort({ service }: ServiceView, live: readonly Pod[], at: number): readonly ExplainFinding[] {
  const port = service.ports[at]
  if (port === undefined) return []
  const containers = (pod: Pod): Pod['containers'] => [...pod.containers, ...pod.initContainers]
  const declares = live.filter((pod) => containers(pod).some(({ ports }) => ports.length > 0))
  const wrong = declares.filter((pod) =>
    containers(pod).every(({ ports }) =>
      ports.every((one) => one.containerPort !== port.targetPort || one.protocol !== port.protocol),
    ),
  )
  if (wrong.length === 0) return []
  const ports = [...new Set(wrong.flatMap(portsOf))].sort(compareText)
  return [
    explainFinding('explain.target-port-undeclared', {
      about: service.meta,
      path: `spec.ports[${at}].targetPort`,
      message: `targetPort ${port.targetPort}/${port.protocol} is none of the ports that ${listOf(
        wrong.map(({ meta }) => meta.name),
        5,
      )} declare: if nothing listens there, the pod refuses at once`,
      evidence: [`declared: ${listOf(ports)}`],
      hint: `compare with the port the program listens on (${listeners[port.protocol] ?? 'ss -ln'} in the pod)`,
    }),
  ]
}
