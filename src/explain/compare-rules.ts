/** What a node's rules do against what they should do: targets missing, dead or foreign, packets stopped or let go. */
import { parseEndpoint, printIp } from '#base/ip'
import { compareText, listOf } from '#base/text'
import type { PlannedEndpoint, ServicePortPlan } from '#compile/services/service-plan'
import type { NodeAnswers } from './answer-nodes'
import { sourceWords } from './choose-sources'
import type { FindingCode } from './findings'
import { holderOf } from './index-holders'
import { isExternal, printDestination } from './list-destinations'
import type { ServiceView } from './service-view'
import { type Answer, isStoppedAsUnknown, lineText, outcomeText } from './trace-node'

/** One thing that differs; those of one code and node become one finding. */
export type Drift = {
  readonly code: FindingCode
  /** An endpoint's address, or the destination where it is about that. */
  readonly subject: string
  readonly destination: string
  readonly evidence: string
  /** The part of connections that it takes. */
  readonly share?: number
}

export function compareRules(view: ServiceView, answers: NodeAnswers): readonly Drift[] {
  const { given, expected } = answers
  if (given === undefined) return []
  const drifts: Drift[] = []
  for (const actual of given.answers) {
    const wanted = expected.find((one) => one.destination === actual.destination && one.from === actual.from)
    if (wanted !== undefined) drifts.push(...compareAnswer({ view, answers, actual, wanted }))
  }
  return drifts
}

type Pair = {
  readonly view: ServiceView
  readonly answers: NodeAnswers
  readonly actual: Answer
  readonly wanted: Answer
}

function compareAnswer(pair: Pair): readonly Drift[] {
  const { actual, wanted } = pair
  const destination = printDestination(actual.destination)
  const at = (code: FindingCode): Drift => ({
    code,
    subject: destination,
    destination,
    evidence: `${destination} from ${sourceWords[actual.from]}: ${outcomeText(actual)}`,
  })
  const has = addressesOf(actual)
  const shouldHave = addressesOf(wanted)
  if (actual.trace.verdict.kind === 'unknown') return [at('explain.undecided')]
  if (isChoiceUnknown(pair)) return classifyTargets(pair, [...has], 'any')
  if (has.size === 0 && shouldHave.size === 0) return compareRefusal(pair, at)
  if (has.size === 0) {
    // A destination that nothing takes is told once for all nodes.
    if (actual.trace.verdict.kind === 'allowed' || isStoppedAsUnknown(actual)) return []
    if (!isOwnRefusal(actual)) return [at('explain.rules-stop-packets')]
  }
  const stops = actual.trace.verdict.kind !== 'allowed' && has.size > 0 ? [at('explain.rules-stop-packets')] : []
  // What is stopped is not among the targets, and no more missing than that.
  const isPart = actual.trace.verdict.because.some(({ code }) => code === 'trace.partly-untranslated')
  const loose = isPart
    ? [{ ...at('explain.partly-untranslated'), evidence: `${destination}: ${partText(actual)}` }]
    : []
  const wrong = [...has].filter((address) => !shouldHave.has(address))
  const missing = [...shouldHave].filter((address) => !has.has(address))
  return [
    ...stops,
    ...loose,
    ...classifyTargets(pair, wrong, 'wanted'),
    ...(stops.length > 0 ? [] : missingTargets(pair, missing)),
  ]
}

/**
 * Whether it cannot be told what policy Local chooses there: without the node's name no endpoint is local, and without
 * the range of pods it is not known whether kube-proxy lets pods take the short way.
 */
function isChoiceUnknown({ answers, actual }: Pair): boolean {
  const plan = planOf(answers, actual)
  if (answers.node === undefined && plan?.usesLocalEndpoints === true) return true
  const isShortWay = actual.from === 'pod' && isExternal(actual.destination) && plan?.isExternalLocal === true
  return isShortWay && answers.plan.localTraffic === undefined
}

function partText({ trace }: Answer): string {
  return trace.verdict.because.find(({ code }) => code === 'trace.partly-untranslated')?.sentence ?? ''
}

function planOf({ plan }: NodeAnswers, { destination }: Answer): ServicePortPlan | undefined {
  return plan.ports.find(({ servicePort }) => servicePort === destination.servicePort)
}

export function addressesOf({ trace }: Answer): ReadonlySet<string> {
  return new Set(trace.targets.map(({ address }) => address))
}

/** In iptables kube-proxy names the Service in the rule that refuses for want of endpoints; in nftables the table is its own. */
function isOwnRefusal({ trace, destination }: Answer): boolean {
  const [{ sentence, rule = '' }] = trace.verdict.because
  return `${sentence} ${rule}`.includes(destination.name) || / kube-proxy, chain /.test(sentence)
}

/**
 * kube-proxy 1.31 in nftables mode asks for local endpoints before it translates: it drops what processes of the node send
 * to an address with policy Local, where later ones let them take the short way.
 */
export function isEarlyDrop({ plan }: NodeAnswers, { trace, destination, from }: Answer): boolean {
  if (from !== 'node' || trace.verdict.kind !== 'dropped' || !isExternal(destination)) return false
  const own = plan.ports.find(({ servicePort }) => servicePort === destination.servicePort)
  const isEmptyHere = own?.isExternalLocal === true && !own.hasExternal && own.chosen.hasAny
  return isEmptyHere && / kube-proxy, chain /.test(trace.verdict.because[0].sentence)
}

function compareRefusal({ actual, wanted, answers }: Pair, at: (code: FindingCode) => Drift): readonly Drift[] {
  const kinds = [wanted.trace.verdict.kind, actual.trace.verdict.kind]
  const rules = answers.given?.rules
  const hasFilter = rules?.nft !== undefined || rules?.rulesets.some(({ tables }) => tables.has('filter')) === true
  const isHang = kinds[0] === 'rejected' && kinds[1] !== 'rejected' && !isOwnRefusal(actual)
  if (isHang && hasFilter) return [at('explain.no-refusal')]
  return []
}

function missingTargets({ view, answers, actual }: Pair, missing: readonly string[]): readonly Drift[] {
  if (missing.length === 0) return []
  const endpoints = endpointsByText(planOf(answers, actual))
  const destination = printDestination(actual.destination)
  const targets = [...addressesOf(actual)].sort(compareText)
  const goes = targets.length === 0 ? outcomeText(actual) : `goes to ${listOf(targets, 6)}`
  const source = view.slices.usesGiven ? 'the slices of the input' : 'the pods'
  const subjects = missing.map((address) => nameOf(endpoints.get(address), address))
  const evidence = `${destination}: ${goes}; ${source} also have ${listOf(subjects, 6)}`
  return subjects.map((subject) => ({ code: 'explain.endpoint-missing-from-rules', subject, destination, evidence }))
}

function endpointsByText(plan: ServicePortPlan | undefined): ReadonlyMap<string, PlannedEndpoint> {
  return new Map((plan?.endpoints ?? []).map((endpoint) => [endpoint.text, endpoint]))
}

function nameOf(endpoint: PlannedEndpoint | undefined, address: string): string {
  const name = endpoint?.endpoint.targetRef?.name
  return name === undefined ? address : `pod ${name} (${address})`
}

/** `any`: a ready endpoint is right wherever it is. */
export function classifyTargets(pair: Pair, addresses: readonly string[], rights: 'any' | 'wanted'): readonly Drift[] {
  if (addresses.length === 0) return []
  const { answers, actual } = pair
  const endpoints = endpointsByText(planOf(answers, actual))
  const lines = linesByTarget(actual)
  const shares = new Map(actual.trace.targets.map(({ address, share }) => [address, share]))
  const destination = printDestination(actual.destination)
  return addresses.flatMap((address) => {
    const endpoint = endpoints.get(address)
    const wrong = endpoint === undefined ? judgeStranger(pair, address) : judgeEndpoint(endpoint, rights)
    if (wrong === undefined) return []
    const line = lineText(lines.get(address), actual.linesIn)
    const evidence = `${destination} sends to ${address}${line}: ${wrong.why}`
    const share = shares.get(address)
    const subject = nameOf(endpoint, address)
    return [{ code: wrong.code, subject, destination, evidence, ...(share !== undefined && { share }) }]
  })
}

type Wrong = { readonly code: FindingCode; readonly why: string }

function judgeEndpoint(
  { isReady, isServing, isTerminating, endpoint }: PlannedEndpoint,
  rights: 'any' | 'wanted',
): Wrong | undefined {
  if (!isReady && !(isServing && isTerminating)) {
    const why = `ready=false serving=${isServing} terminating=${isTerminating}`
    return { code: 'explain.rule-to-unready-endpoint', why }
  }
  if (rights === 'any') return undefined
  if (!isReady) return { code: 'explain.rule-to-unready-endpoint', why: 'it is terminating, and others are ready' }
  const why = `ready, on ${endpoint.nodeName ?? 'no node'}, but not chosen here`
  return { code: 'explain.rule-to-other-endpoint', why }
}

/** An address that is no endpoint of the port. */
function judgeStranger({ view, answers, actual }: Pair, address: string): Wrong {
  const ip = parseEndpoint(address)
  const holder = ip === undefined ? undefined : holderOf(view.holders, printIp(ip.ip))
  if (holder === undefined) return { code: 'explain.rule-to-no-endpoint', why: 'no pod or node of the input has it' }
  const own = view.pods.find(({ meta }) => holder === `pod ${meta.namespace}/${meta.name}`)
  if (own === undefined) return { code: 'explain.rule-to-foreign-pod', why: `${holder} has it now` }
  const others = planOf(answers, actual)?.endpoints.filter(({ endpoint }) => endpoint.targetRef?.name === own.meta.name)
  const texts = listOf((others ?? []).map(({ text }) => text)) || 'none for this port'
  return { code: 'explain.rule-to-no-endpoint', why: `${holder} has the address, but its endpoint is ${texts}` }
}

/** The lines of the rules that send to each target, from the hops of the trace. */
function linesByTarget({ trace }: Answer): ReadonlyMap<string, number> {
  const lines = new Map<string, number>()
  for (const { at, after, did } of trace.hops) {
    if (at.line !== undefined && after !== undefined && did.startsWith('sent to')) lines.set(after, at.line)
  }
  return lines
}
