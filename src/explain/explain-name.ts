/** The name: what cluster DNS answers for the Service, and whether anyone is there to answer. */
import { parseIp } from '#base/ip'
import { compareText, countOf, listOf } from '#base/text'
import { clusterNameservers } from '#compile/dns/cluster-nameservers'
import { printRecordData } from '#compile/dns/record'
import type { Endpoint } from '#model/endpoint-slice'
import { keyOf } from '#model/meta'
import { isHeadless } from '#model/service'
import { adoptFinding } from './adopt-finding'
import { askDns, type NameAnswer, type NameAnswers } from './ask-dns'
import { endpointsOf, nameEndpoint, stateOf } from './describe-endpoint'
import { type ExplainFinding, type Layer, layerOf } from './explanation'
import { explainFinding } from './findings'
import { focusOn, serviceSlices } from './service-slices'
import type { ServiceView } from './service-view'

type Told = { readonly facts: readonly string[]; readonly findings: readonly ExplainFinding[] }

export function explainName(view: ServiceView): Layer {
  const asked = askDns(view)
  const server = explainServer(view)
  return layerOf('name', {
    facts: [...asked.answers.flatMap((answer) => answerFacts(view, asked.name, answer)), ...server.facts],
    findings: [
      ...judgeAnswer(view, asked),
      ...server.findings,
      ...asked.findings.map((finding) => adoptFinding(finding)),
    ],
  })
}

function answerFacts({ service }: ServiceView, name: string, { type, reply }: NameAnswer): readonly string[] {
  const records = listOf(
    reply.answers.map((one) => `${one.type === type ? '' : `${one.type} `}${printRecordData(one)}`),
  )
  const negative = reply.rcode === 'NOERROR' ? 'no records' : reply.rcode
  const unsure = (reply.unsure ?? []).map((doubt) => `not sure of that: ${doubt}`)
  const isPlain = records !== '' && service.type !== 'ExternalName' && !isHeadless(service)
  const because = isPlain ? '' : `: ${reply.because}`
  return [`${name} ${type} ${records || negative}${because}`, ...unsure]
}

function judgeAnswer(view: ServiceView, asked: NameAnswers): readonly ExplainFinding[] {
  const { service } = view
  const hasAddress = asked.answers.some(({ addresses }) => addresses.length > 0)
  const isOutside = asked.answers.some(({ reply }) => reply.forwarded !== undefined)
  if (service.type === 'ExternalName') {
    return isOutside ? judgeShortName(view, asked) : judgeExternalName(view, asked, hasAddress)
  }
  if (!hasAddress) return [nameWithoutAnswer(view, asked)]
  return isHeadless(service) ? judgeHeadless(view, asked) : []
}

function nameWithoutAnswer({ service, slices }: ServiceView, { name, answers }: NameAnswers): ExplainFinding {
  const [first] = answers
  const rcode = first?.reply.rcode === 'NOERROR' ? 'no records' : (first?.reply.rcode ?? 'no answer')
  const all = [...endpointsOf(slices.used)].map(({ endpoint }) => endpoint)
  const isUnready = isHeadless(service) && all.length > 0
  return explainFinding('explain.name-without-answer', {
    about: service.meta,
    message: `${name} does not resolve (${rcode}, which is remembered): ${first?.reply.because ?? 'nothing answers'}`,
    ...(isUnready && { path: 'spec.publishNotReadyAddresses' }),
    evidence: isUnready
      ? all.slice(0, 10).map((endpoint) => `${nameEndpoint(endpoint)}: ${conditionsText(endpoint)}`)
      : answers.map(({ type, reply }) => `${name} ${type}: ${reply.rcode} (plugin ${reply.by})`),
    hint: isHeadless(service)
      ? 'mend what keeps the pods from being ready; where clients must find pods that start, set publishNotReadyAddresses: true'
      : 'see what the Corefile serves (kubectl -n kube-system get configmap coredns -o yaml)',
  })
}

function conditionsText(endpoint: Endpoint): string {
  const { isReady, isServing, isTerminating } = stateOf(endpoint)
  return `ready=${isReady} serving=${isServing} terminating=${isTerminating}`
}

function addressOf(endpoint: Endpoint): string {
  return endpoint.addresses[0] ?? ''
}

/** The name follows the slices; where these have fallen behind, it sends clients to pods that are gone. */
function judgeHeadless(view: ServiceView, { answers }: NameAnswers): readonly ExplainFinding[] {
  const { service, slices } = view
  const answered = new Set(answers.flatMap(({ addresses }) => addresses))
  const isAnswered = (endpoint: Endpoint): boolean => answered.has(addressOf(endpoint))
  const unready = [...endpointsOf(slices.used)]
    .map(({ endpoint }) => endpoint)
    .filter((endpoint) => isAnswered(endpoint) && !stateOf(endpoint).isServing)
  const pods = [...endpointsOf(slices.wanted ?? [])].map(({ endpoint }) => endpoint)
  const ready = pods.filter((endpoint) => stateOf(endpoint).isReady)
  const known = new Set(ready.map(addressOf))
  const extra = slices.wanted === undefined ? [] : [...answered].filter((ip) => !known.has(ip))
  const lost = ready.filter((endpoint) => !isAnswered(endpoint))
  return [
    ...(extra.length + lost.length === 0 ? [] : [answerDiffers(view, { answered, ready, extra, lost })]),
    ...(unready.length > 0 && service.publishNotReadyAddresses ? [answersNotReady(view, unready)] : []),
  ]
}

type Differing = {
  readonly answered: ReadonlySet<string>
  readonly ready: readonly Endpoint[]
  readonly extra: readonly string[]
  readonly lost: readonly Endpoint[]
}

function answerDiffers({ service }: ServiceView, { answered, ready, extra, lost }: Differing): ExplainFinding {
  const parts = [
    ...(extra.length > 0 ? [`answers with ${listOf(extra)}, which no ready pod has`] : []),
    ...(lost.length > 0 ? [`leaves out ${listOf(lost.map(nameEndpoint))}`] : []),
  ]
  return explainFinding('explain.name-answer-differs', {
    about: service.meta,
    message: `its name ${parts.join(', and it ')}`,
    evidence: [
      `answered: ${listOf([...answered].sort(compareText))}`,
      `ready pods: ${listOf(ready.map(nameEndpoint)) || 'none'}`,
    ],
    hint: 'the slices are what DNS reads: see that layer',
  })
}

function answersNotReady({ service }: ServiceView, unready: readonly Endpoint[]): ExplainFinding {
  return explainFinding('explain.name-answers-not-ready', {
    about: service.meta,
    message: `its name also answers with ${countOf(unready.length, 'pod that is', 'pods that are')} not ready, as publishNotReadyAddresses asks`,
    path: 'spec.publishNotReadyAddresses',
    evidence: unready.slice(0, 10).map((endpoint) => `${nameEndpoint(endpoint)}: ${conditionsText(endpoint)}`),
    hint: 'clients must cope with a pod that refuses; otherwise set publishNotReadyAddresses: false',
  })
}

function judgeExternalName(
  { service }: ServiceView,
  { name, domain, answers }: NameAnswers,
  hasAddress: boolean,
): readonly ExplainFinding[] {
  const target = (service.externalName ?? '').replace(/\.$/, '')
  const because = answers[0]?.reply.because ?? ''
  const about = { about: service.meta, path: 'spec.externalName' }
  const evidence = answers.map(({ type, reply }) => `${name} ${type}: ${reply.rcode}; ${reply.because}`)
  if (parseIp(target) !== undefined) {
    const message = `externalName ${target} is an address, and a CNAME needs a name: it does not resolve`
    const hint = `use a Service without selector, and an EndpointSlice with address ${target}`
    return [explainFinding('explain.external-name-is-address', { ...about, message, evidence, hint })]
  }
  if (!hasAddress) {
    const message = `externalName ${target} does not resolve: ${because}`
    const hint = `name a Service that exists, or a name outside ${domain}: that zone is asked in the cluster alone`
    return [explainFinding('explain.external-name-unknown', { ...about, message, evidence, hint })]
  }
  const found = listOf(answers.flatMap(({ addresses }) => addresses))
  const message = `externalName ${target} is a name of this cluster: DNS follows it inside and answers ${found}`
  const hint = 'ports are not translated: a client must use those of the Service it leads to'
  return [explainFinding('explain.external-name-inside', { ...about, message, evidence, hint })]
}

/** `web.shop` is a name of the cluster only by way of a search list, which a CNAME does not go through. */
function judgeShortName({ service, input }: ServiceView, { domain, answers }: NameAnswers): readonly ExplainFinding[] {
  const target = (service.externalName ?? '').replace(/\.$/, '')
  const [name = '', namespace = service.meta.namespace, branch, ...rest] = target.split('.')
  const meant = input.cluster.services.get(`${namespace}/${name}`)
  if (meant === undefined || rest.length > 0 || (branch !== undefined && branch !== 'svc')) return []
  return [
    explainFinding('explain.external-name-short', {
      about: service.meta,
      path: 'spec.externalName',
      message: `externalName ${target} is a short name of Service ${keyOf(meant.meta)}, and DNS asks for it outside the cluster, where it is not: a CNAME goes through no search list`,
      evidence: answers.map(({ reply }) => reply.because).slice(0, 1),
      hint: `write the whole name: ${name}.${namespace}.svc.${domain}`,
    }),
  ]
}

/** Whether the Service that pods send their questions to has anyone behind it. */
function explainServer({ input, service }: ServiceView): Told {
  const known = clusterNameservers(input.cluster).service
  const server = known === undefined ? undefined : input.cluster.services.get(`${known.namespace}/${known.name}`)
  if (server === undefined || keyOf(server.meta) === keyOf(service.meta)) return { facts: [], findings: [] }
  const { used, given } = serviceSlices(focusOn(input.cluster, server), server, input.slices)
  const hasPods = [...input.cluster.pods.values()].some(({ meta }) => meta.namespace === server.meta.namespace)
  if (!hasPods && given.length === 0) return { facts: [], findings: [] }
  const ready = [...endpointsOf(used)].filter(({ endpoint }) => stateOf(endpoint).isReady).length
  const name = keyOf(server.meta)
  if (ready > 0) {
    const at = server.clusterIPs[0] === undefined ? '' : ` at ${server.clusterIPs[0]}`
    return { facts: [`names are resolved by ${name}${at}, ${countOf(ready, 'ready endpoint')}`], findings: [] }
  }
  const finding = explainFinding('explain.dns-without-endpoints', {
    about: server.meta,
    message: `the cluster's DNS Service ${name} has no ready endpoint: no name resolves`,
    evidence: [`${countOf(used.length, 'slice')} of ${name} without a ready endpoint`],
    hint: `explain ${name} first`,
  })
  return { facts: [], findings: [finding] }
}
