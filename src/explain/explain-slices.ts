/** The slices and their conditions: which endpoints there are, which take connections, and whether the pods imply them. */
import { countOf, listOf } from '#base/text'
import type { PlannedEndpoint, ServicePortPlan } from '#compile/services/service-plan'
import type { Endpoint, EndpointSlice } from '#model/endpoint-slice'
import { adoptFinding } from './adopt-finding'
import { compareSlices } from './compare-slices'
import { endpointsOf, nameEndpoint, stateOf } from './describe-endpoint'
import { explainEmptiness } from './explain-emptiness'
import { type ExplainFinding, type Layer, type LayerTable, layerOf } from './explanation'
import { explainFinding } from './findings'
import { placeFinding } from './place-finding'
import type { ServiceView } from './service-view'

export function explainSlices(view: ServiceView): Layer {
  const { slices, service } = view
  if (service.type === 'ExternalName' && slices.used.length === 0) {
    return { layer: 'slices', status: 'skipped', facts: ['an ExternalName Service has none'], findings: [] }
  }
  const told = view.findings.filter((finding) => placeFinding(finding) === 'slices').filter(isNews(view))
  const empty = emptySlices(view)
  const tellsEmpty = empty.some(({ path }) => path === 'endpoints')
  const compared = compareSlices(view).filter(({ code }) => !tellsEmpty || code !== 'explain.slice-lacks-pod')
  return layerOf('slices', {
    facts: factsOf(view),
    table: tableOf(slices.used),
    findings: [
      ...portFindings(view),
      ...empty,
      ...compared,
      ...told.map((finding) => adoptFinding(finding)),
      ...hintFindings(view),
    ],
  })
}

/** A port that no pod has by name is told where its pods are; the slices then lack it of course. */
function isNews({ slices }: ServiceView): (finding: { readonly code: string }) => boolean {
  return ({ code }) => code !== 'services.port-name-mismatch' || slices.usesGiven
}

function factsOf({ slices, input, pods }: ServiceView): readonly string[] {
  const all = [...endpointsOf(slices.used)].map(({ endpoint }) => stateOf(endpoint))
  const ready = all.filter(({ isReady }) => isReady).length
  const terminating = all.filter(({ isTerminating }) => isTerminating).length
  const count = `${countOf(slices.used.length, 'slice')}, ${countOf(all.length, 'endpoint')}, ${ready} ready`
  const more = terminating === 0 ? '' : `, ${terminating} terminating`
  const isComputed = input.cluster.slices.size > 0 && pods.length > 0 && !slices.usesGiven
  const source = slices.usesGiven
    ? 'as the input has them'
    : isComputed
      ? 'computed from the pods: the input has no slice of this Service'
      : 'computed from the pods'
  return [`${count}${more}, ${source}`]
}

function tableOf(used: readonly EndpointSlice[]): LayerTable {
  const rows = [...endpointsOf(used)].map(({ slice, endpoint }) => {
    const { isReady, isServing, isTerminating } = stateOf(endpoint)
    const ports = slice.ports.map(({ name, port, protocol }) => `${name ? `${name}:` : ''}${port ?? '*'}/${protocol}`)
    return [
      endpoint.addresses[0] ?? '<none>',
      ports.join(',') || '<none>',
      String(isReady),
      String(isServing),
      String(isTerminating),
      endpoint.targetRef?.name ?? '<none>',
      endpoint.nodeName ?? '<none>',
      slice.meta.name,
    ]
  })
  return { columns: ['ADDRESS', 'PORTS', 'READY', 'SERVING', 'TERMINATING', 'POD', 'NODE', 'SLICE'], rows }
}

/** Ports of all families that have no endpoint, or only terminating ones. */
function portFindings(view: ServiceView): readonly ExplainFinding[] {
  const findings: ExplainFinding[] = []
  const { slices, service, input } = view
  // Without pods and slices nothing is known of endpoints.
  if (slices.given.length === 0 && service.selector !== undefined && input.cluster.pods.size === 0) return []
  const tellsTerminating = new Set<string>()
  for (const plan of view.plans.flatMap(({ ports }) => ports)) {
    const ready = plan.endpoints.filter(({ isReady }) => isReady)
    const draining = plan.endpoints.filter(({ isServing, isTerminating }) => isServing && isTerminating)
    if (ready.length === 0 && draining.length === 0) findings.push(noEndpoints(view, plan))
    else if (ready.length === 0) findings.push(onlyTerminating(view, plan, draining))
    else {
      const leaving = plan.endpoints.filter(({ isReady, isTerminating }) => isTerminating && !isReady)
      const key = leaving.map(({ ip }) => ip).join()
      if (leaving.length > 0 && !tellsTerminating.has(key)) findings.push(terminating(view, leaving))
      tellsTerminating.add(key)
    }
  }
  return findings
}

function noEndpoints(view: ServiceView, plan: ServicePortPlan): ExplainFinding {
  const { because, evidence, hint } = explainEmptiness(view, plan)
  const at = view.service.ports.indexOf(plan.servicePort)
  // Rules that were given may do something else, and say so in their own layer.
  const effect = view.input.nodeRulesets.length > 0 ? '' : '; connections are refused at once'
  return explainFinding('explain.no-endpoints', {
    about: view.service.meta,
    path: `spec.ports[${at}]`,
    message: `port ${plan.port}/${plan.protocol.toUpperCase()} at ${plan.clusterIP} has no endpoint, because ${because}${effect}`,
    evidence,
    hint,
  })
}

function onlyTerminating(
  view: ServiceView,
  plan: ServicePortPlan,
  draining: readonly PlannedEndpoint[],
): ExplainFinding {
  return explainFinding('explain.only-terminating', {
    about: view.service.meta,
    message: `port ${plan.port}/${plan.protocol.toUpperCase()} has no ready endpoint; its connections go to ${countOf(draining.length, 'terminating pod')} until ${draining.length === 1 ? 'it is' : 'they are'} gone`,
    evidence: draining.slice(0, 10).map(({ endpoint, text }) => `${text}: ${conditions(endpoint)}`),
    hint: 'see why no new pod is ready yet',
  })
}

function terminating(view: ServiceView, leaving: readonly PlannedEndpoint[]): ExplainFinding {
  return explainFinding('explain.terminating-endpoints', {
    about: view.service.meta,
    message: `${listOf(leaving.map(({ endpoint }) => nameEndpoint(endpoint)))} ${leaving.length === 1 ? 'terminates' : 'terminate'}: no new connections; those they have go on until the pod ends`,
    evidence: leaving.slice(0, 10).map(({ endpoint }) => `${nameEndpoint(endpoint)}: ${conditions(endpoint)}`),
    hint: 'errors in a rollout come from connections made before; let the pod wait in preStop and finish its requests',
  })
}

function conditions(endpoint: Endpoint): string {
  const { isReady, isServing, isTerminating } = stateOf(endpoint)
  return `ready=${isReady} serving=${isServing} terminating=${isTerminating}`
}

/** Slices of the input that hold nothing, or no port, while pods with an address are selected. */
function emptySlices(view: ServiceView): readonly ExplainFinding[] {
  const { service, slices, pods } = view
  const addressed = pods.filter((pod) => pod.podIPs.length > 0 && pod.phase === 'Running')
  const holdsAll = [...endpointsOf(slices.given)].length > 0
  const ofPorts = slices.given.filter(({ endpoints, ports }) => endpoints.length > 0 && ports.length === 0)
  const ofEndpoints = holdsAll || addressed.length === 0 ? [] : slices.given
  const isPortless = service.ports.length === 0
  return [...(isPortless ? [] : ofPorts), ...ofEndpoints].map((slice) => {
    const what = slice.endpoints.length === 0 ? 'no endpoints' : 'endpoints but no ports'
    const names = service.ports.map(({ targetPort }) => targetPort).filter((port) => typeof port === 'string')
    const asked = names.length === 0 ? '' : `; targetPort is ${listOf(names.map((name) => `"${name}"`))}`
    return explainFinding('explain.empty-slice', {
      about: slice.meta,
      path: slice.endpoints.length === 0 ? 'endpoints' : 'ports',
      message: `slice ${slice.meta.name} holds ${what} though ${countOf(addressed.length, 'pod is', 'pods are')} selected${asked}`,
      evidence: addressed.slice(0, 10).map((pod) => `pod ${pod.meta.name}: ${containerPorts(pod)}`),
      hint: 'after a port is renamed, Service and containers must use the same name and protocol',
    })
  })
}

function containerPorts({ containers }: ServiceView['pods'][number]): string {
  const ports = containers.flatMap((container) =>
    container.ports.map(({ name, containerPort, protocol }) => `${name ?? '(no name)'} ${containerPort}/${protocol}`),
  )
  return ports.length === 0 ? 'declares no ports' : `declares ${listOf(ports)}`
}

/** pkg/proxy/topology.go (1.34): one ready endpoint without a hint ends the hints of all. */
function hintFindings({ service, slices }: ServiceView): readonly ExplainFinding[] {
  const ready = [...endpointsOf(slices.used)].map(({ endpoint }) => endpoint).filter((one) => stateOf(one).isReady)
  const hinted = ready.filter(({ forZones }) => (forZones ?? []).length > 0)
  const bare = ready.filter(({ forZones }) => (forZones ?? []).length === 0)
  if (hinted.length === 0 || bare.length === 0) return []
  return [
    explainFinding('explain.hints-incomplete', {
      about: service.meta,
      path: 'spec.trafficDistribution',
      message: `${listOf(bare.map(nameEndpoint), 5)} has no topology hint, so the hints of all ${countOf(ready.length, 'endpoint')} are off: traffic crosses zones`,
      evidence: [
        ...bare.slice(0, 5).map((endpoint) => `${nameEndpoint(endpoint)}: no hint, zone ${endpoint.zone ?? 'unknown'}`),
        ...hinted.slice(0, 5).map((endpoint) => `${nameEndpoint(endpoint)}: for ${listOf(endpoint.forZones ?? [])}`),
      ],
      hint: 'label its node with topology.kubernetes.io/zone; hints are all or nothing',
    }),
  ]
}
