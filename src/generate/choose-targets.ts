/** Targets: the workloads that get a policy, and the labels that select their pods through every roll-out. */
import type { Finding } from '#base/finding'
import { compareText, countOf, listOf } from '#base/text'
import type { DirectoryIndex } from '#flows/directory'
import type { Labels, Workload } from '#flows/holder'
import { stableLabels } from '#flows/stable-labels'
import { explainBadName } from '#manifests/kinds/names'
import { type LabelSelector, matchesSelector } from '#model/selector'
import { type GenerateCode, generateFinding } from './findings'
import type { Gathering } from './gather-flows'
import { policyName } from './policy-name'
import { areLabels, lastingLabels, type Surroundings, seenLabels } from './select-pods'

/** Without a namespace all of them; with a name one workload or bare pod, of a kind where the name is not enough. */
export type TargetChoice = { readonly namespace?: string; readonly kind?: string; readonly name?: string }

export type Target = {
  readonly namespace: string
  /** `Pod` for one that no controller owns. */
  readonly kind: string
  readonly name: string
  readonly selector: LabelSelector
  readonly isHostNetwork: boolean
  /** Whether anything was recorded at its own pods. */
  readonly isRecorded: boolean
  /** Other workloads whose pods it selects, sorted: `Deployment canary`. */
  readonly alsoSelects: readonly string[]
}

export type Choice = {
  readonly targets: readonly Target[]
  readonly findings: readonly Finding[]
  /** Names of what is known, for a choice that nobody has heard of. */
  readonly known: readonly string[]
}

type Candidate = {
  readonly namespace: string
  readonly kind: string
  readonly name: string
  /** Label sets of its pods, each once: of those that are known to live, or that it would make; and of all that were there. */
  readonly living: Map<string, Labels>
  readonly labelSets: Map<string, Labels>
  isHostNetwork: boolean
  isRecorded: boolean
}

export function chooseTargets(gathering: Gathering, surroundings: Surroundings, choice: TargetChoice): Choice {
  const candidates = findCandidates(gathering, surroundings.index)
  const isNamed = choice.name !== undefined
  const chosen = candidates.filter((one) => isChosen(one, choice) && (isNamed || one.isRecorded))
  const findings: Finding[] = []
  const targets = chosen.flatMap((one): readonly Target[] => {
    const selector = selectorOf(surroundings, one, candidates)
    if ('code' in selector) {
      findings.push(selector)
      return []
    }
    const { namespace, kind, name, isHostNetwork, isRecorded } = one
    const alsoSelects = others(candidates, one, selector)
    return [{ namespace, kind, name, selector, isHostNetwork, isRecorded, alsoSelects }]
  })
  findings.push(...targets.flatMap(tellTarget), ...tellSilent(candidates, choice))
  return { targets, findings, known: candidates.map(({ namespace, kind, name }) => `${namespace}/${kind}/${name}`) }
}

function isChosen({ namespace, kind, name }: Candidate, choice: TargetChoice): boolean {
  if (choice.namespace !== undefined && choice.namespace !== namespace) return false
  if (choice.name !== undefined && choice.name !== name) return false
  return choice.kind === undefined || choice.kind.toLowerCase() === kind.toLowerCase()
}

export function workloadKeyOf(namespace: string, workload: Workload | null, pod: string): string {
  return workload === null ? `${namespace}/Pod/${pod}` : `${namespace}/${workload.kind}/${workload.name}`
}

/** Every workload that flows or the directory name, in the order of namespace, name and kind. */
function findCandidates(gathering: Gathering, index: DirectoryIndex): readonly Candidate[] {
  const found = new Map<string, Candidate>()
  const add = (namespace: string, workload: Workload | null, pod: string): Candidate => {
    const key = workloadKeyOf(namespace, workload, pod)
    const { kind, name } = workload ?? { kind: 'Pod', name: pod }
    const made = {
      namespace,
      kind,
      name,
      living: new Map(),
      labelSets: new Map(),
      isHostNetwork: false,
      isRecorded: false,
    }
    const known = found.get(key) ?? made
    found.set(key, known)
    return known
  }
  for (const pod of index.pods) {
    const candidate = add(pod.namespace, pod.workload, pod.name)
    addLabels(candidate, pod.labels, !pod.isDead)
    if (pod.isHostNetwork) candidate.isHostNetwork = true
  }
  for (const { namespace, kind, name, labels, isHostNetwork } of index.workloads) {
    // The pods of a ReplicaSet and of a CronJob's Job are counted to what owns these.
    if (kind === 'ReplicaSet' || kind === 'Job') continue
    const candidate = add(namespace, { kind, name }, name)
    addLabels(candidate, labels, true)
    if (isHostNetwork) candidate.isHostNetwork = true
  }
  for (const { end: own } of [...gathering.ends.own.values()].flat()) {
    if (own.namespace === null) continue
    const candidate = add(own.namespace, own.workload, own.name)
    candidate.isRecorded = true
    if (own.labels !== null) addLabels(candidate, own.labels, false)
    if (own.isHostNetwork) candidate.isHostNetwork = true
  }
  return [...found.values()].sort(
    (a, b) => compareText(a.namespace, b.namespace) || compareText(a.name, b.name) || compareText(a.kind, b.kind),
  )
}

function addLabels({ living, labelSets }: Candidate, labels: Labels, isLiving: boolean): void {
  const stable = stableLabels(labels)
  const text = JSON.stringify(stable)
  labelSets.set(text, stable)
  if (isLiving) living.set(text, stable)
}

/** The workload's own selector, but for what a roll-out changes; else what all of its pods have. Or why there is none. */
function selectorOf(
  surroundings: Surroundings,
  one: Candidate,
  candidates: readonly Candidate[],
): LabelSelector | Finding {
  const { namespace, kind, name, living, labelSets } = one
  const why = explainBadName('Namespace', namespace) ?? explainBadName('NetworkPolicy', policyName(one))
  if (why !== undefined) return about('generate.bad-name', one, `it gets no policy: ${why}`)
  const own = surroundings.index.workloadsByName.get(`${kind} ${namespace}/${name}`)?.selector
  const kept = own === undefined ? undefined : lastingSelector(surroundings, own)
  if (kept !== undefined) return kept
  if (labelSets.size === 0) {
    const untold = about('generate.no-labels', one, 'the flows do not tell its labels; it gets no policy')
    return { ...untold, hint: 'give its pods with --from, or ask a broker that knows them' }
  }
  const all = labelsOfAll([...(living.size > 0 ? living : labelSets).values()])
  if (!areLabels(all))
    return about('generate.bad-name', one, 'it gets no policy: no pod can have the labels it is said to have')
  const seen = seenLabels(surroundings, all)
  if (Object.keys(seen).length > 0) return narrowest(candidates, one, seen)
  const lacking =
    Object.keys(all).length === 0
      ? 'outlives a roll-out and is on all of its pods'
      : 'that its pods have is one that Cilium keeps'
  return about('generate.no-labels', one, `no label ${lacking}; it gets no policy`)
}

function lastingSelector(
  surroundings: Surroundings,
  { matchLabels, matchExpressions }: LabelSelector,
): LabelSelector | undefined {
  const lasting = seenLabels(surroundings, stableLabels(matchLabels))
  const expressions = matchExpressions.filter(
    ({ key }) => Object.keys(seenLabels(surroundings, stableLabels({ [key]: '' }))).length > 0,
  )
  if (Object.keys(lasting).length + expressions.length === 0) return undefined
  return { matchLabels: lasting, matchExpressions: expressions }
}

/** Labels of a release would select nobody after the next one; they are kept where they alone keep other workloads out. */
function narrowest(candidates: readonly Candidate[], one: Candidate, labels: Labels): LabelSelector {
  const selecting = (matchLabels: Labels): LabelSelector => ({ matchLabels, matchExpressions: [] })
  const [exact, lasting] = [selecting(labels), selecting(lastingLabels(labels))]
  return others(candidates, one, exact).length < others(candidates, one, lasting).length ? exact : lasting
}

function labelsOfAll(sets: readonly Labels[]): Labels {
  const [first = {}, ...rest] = sets
  return Object.fromEntries(
    Object.entries(first)
      .filter(([key, value]) => rest.every((labels) => labels[key] === value))
      .sort(([a], [b]) => compareText(a, b)),
  )
}

function others(candidates: readonly Candidate[], own: Candidate, selector: LabelSelector): readonly string[] {
  return candidates
    .filter((one) => one !== own && one.namespace === own.namespace && !one.isHostNetwork)
    .filter(({ labelSets }) => [...labelSets.values()].some((labels) => matchesSelector(selector, labels)))
    .map(({ kind, name }) => `${kind} ${name}`)
}

function tellTarget(target: Target): readonly Finding[] {
  const { alsoSelects, isHostNetwork } = target
  const told: Finding[] = []
  if (alsoSelects.length > 0) {
    const whom = `its policy selects the pods of ${listOf(alsoSelects)} as well, which have the same labels`
    const hint = 'give one of them a label that the other lacks'
    told.push({ ...about('generate.selects-others', target, whom), hint })
  }
  if (isHostNetwork) {
    told.push(
      about('generate.host-network', target, 'its pods have their node’s network, which no policy for pods holds for'),
    )
  }
  return told
}

function about(code: GenerateCode, { namespace, kind, name }: Candidate | Target, message: string): Finding {
  return generateFinding(code, { message, object: { kind, namespace, name } })
}

function tellSilent(candidates: readonly Candidate[], choice: TargetChoice): readonly Finding[] {
  const silent = candidates.filter((one) => isChosen(one, choice) && !one.isRecorded)
  if (choice.name !== undefined || silent.length === 0) return []
  const names = listOf(silent.map(({ namespace, name }) => `${namespace}/${name}`))
  const message = `at ${countOf(silent.length, 'workload')} nothing was recorded, and no policy is made: ${names}`
  return [generateFinding('generate.not-recorded', { message, hint: 'name one as NS/WORKLOAD to get its policy' })]
}
