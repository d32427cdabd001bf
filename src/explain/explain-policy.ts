/** Network policy: what isolates the backends, and who may reach them. */
import { printRef } from '#base/finding'
import { countOf, listOf } from '#base/text'
import type { Cluster } from '#model/cluster'
import { ciliumSemantics } from '#trace/policy/cilium-semantics'
import { kubernetesSemantics } from '#trace/policy/k8s-semantics'
import { policiesFor } from '#trace/policy/lane'
import { classOf, type PolicyWorld, preparePolicies } from '#trace/policy/world'
import { routesOf, type ServiceRoute } from '#verify/policy/service-rows'
import { type ExplainFinding, type Layer, type LayerTable, layerOf } from './explanation'
import { explainFinding } from './findings'
import { askClient, type Client, type ClientAnswer, findClients, type Reach } from './policy-clients'
import type { ServiceView } from './service-view'

/** Kinds of other projects, whose policies are not evaluated. */
const foreignKinds = ['GlobalNetworkPolicy', 'StagedNetworkPolicy', 'NetworkPolicy (']

export function explainPolicy(view: ServiceView): Layer {
  const { cluster } = view.input
  const foreign = foreignCounts(cluster)
  const counts = countPolicies(cluster)
  if (counts === '') {
    const fact =
      foreign === ''
        ? 'not evaluated; the input holds none'
        : `not evaluated, and the input holds ${foreign}: one of them may drop what the layers above let through`
    return { layer: 'policy', status: 'skipped', facts: [fact], findings: [] }
  }
  const { world, silent } = prepare(cluster)
  const routes = routesOf(cluster, view.service, view.slices.used).filter(({ backends }) => backends.length > 0)
  const reader = world.semantics.name === 'cilium' ? 'Cilium enforces them' : 'Kubernetes defines them'
  const read = `${counts}, as ${reader}${foreign === '' ? '' : `; ${foreign} are of another project and not evaluated`}`
  if (routes.length === 0) {
    return {
      layer: 'policy',
      status: 'skipped',
      facts: [read, ...silent, 'no backend is there for a policy to hold for'],
      findings: [],
    }
  }
  const clients = findClients(world, view.families)
  const answers = routes.map(
    (route): PortAnswers => ({ route, answers: clients.flatMap((one) => askClient(world, one, route) ?? []) }),
  )
  return layerOf('policy', {
    facts: [read, ...silent, ...isolationFacts(world, routes)],
    table: tableOf(answers),
    findings: answers.flatMap((one) => findingsOf(view, one)),
  })
}

function foreignCounts({ skippedKinds }: Cluster): string {
  const found = [...skippedKinds].filter(([kind]) => foreignKinds.some((known) => kind.startsWith(known)))
  return listOf(found.map(([kind, count]) => `${count} ${kind}`))
}

function countPolicies({ networkPolicies, tierPolicies, ciliumPolicies }: Cluster): string {
  const all = [...networkPolicies.values(), ...tierPolicies.values(), ...ciliumPolicies.values()]
  const counts = new Map<string, number>()
  for (const { meta } of all) counts.set(meta.kind, (counts.get(meta.kind) ?? 0) + 1)
  return listOf([...counts].map(([kind, count]) => countOf(count, kind, kind.replace(/y$/, 'ies'))))
}

type Prepared = {
  readonly world: PolicyWorld
  /** Policies of which nothing is enforced, and why. */
  readonly silent: readonly string[]
}

/** Policies of Cilium are there where Cilium is. */
function prepare(cluster: Cluster): Prepared {
  if (cluster.ciliumPolicies.size === 0) {
    return { world: preparePolicies(cluster, { semantics: kubernetesSemantics }), silent: [] }
  }
  const semantics = ciliumSemantics(cluster)
  const silent = semantics.findings.map(
    ({ object, message }) => `${object === undefined ? '' : `${printRef(object)}: `}${message}`,
  )
  return { world: preparePolicies(cluster, { semantics }), silent }
}

/** Backends with the same policies in one sentence. */
function isolationFacts(world: PolicyWorld, routes: readonly ServiceRoute[]): readonly string[] {
  const groups = new Map<string, Set<string>>()
  for (const { party } of routes.flatMap(({ backends }) => backends)) {
    if (party.kind !== 'pod') continue
    const { policies } = policiesFor(world, 'ingress', classOf(world, party))
    const names = policies.map(
      ({ source }) =>
        `${source.object.kind} ${source.object.namespace === undefined ? '' : `${source.object.namespace}/`}${source.object.name}`,
    )
    const text = listOf([...new Set(names)], 5)
    const pods = groups.get(text) ?? new Set()
    groups.set(text, pods.add(party.pod.meta.name))
  }
  return [...groups].map(([policies, pods]) => {
    const who = `${pods.size === 1 ? 'pod' : 'pods'} ${listOf([...pods], 5)}`
    return policies === ''
      ? `no policy holds for what comes in to ${who}`
      : `what comes in to ${who} is subject to ${policies}`
  })
}

type PortAnswers = { readonly route: ServiceRoute; readonly answers: readonly ClientAnswer[] }

const words: Readonly<Record<Reach, string>> = { all: 'yes', some: 'some pods', none: 'no', unknown: 'unknown' }
const order: readonly Reach[] = ['none', 'some', 'unknown', 'all']

/** Clients that fare alike for the same reason share a row. */
function tableOf(ports: readonly PortAnswers[]): LayerTable {
  const rows = ports.flatMap(({ route, answers }) => {
    const groups = new Map<string, ClientAnswer[]>()
    for (const answer of answers) {
      const key = `${answer.reach} ${whyOf(answer)}`
      const group = groups.get(key) ?? []
      groups.set(key, group)
      group.push(answer)
    }
    return [...groups.values()]
      .sort(([a], [b]) => order.indexOf(a?.reach ?? 'all') - order.indexOf(b?.reach ?? 'all'))
      .flatMap((group): readonly string[][] => {
        const [first] = group
        if (first === undefined) return []
        return [
          [listOf(namesOf(group.map(({ client }) => client)), 4), portsOf(route), words[first.reach], whyOf(first)],
        ]
      })
  })
  return { columns: ['CLIENTS', 'PORT', 'MAY', 'BY'], rows }
}

function namesOf(clients: readonly Client[]): readonly string[] {
  return [...new Set(clients.map(({ name }) => name))]
}

/** `80/TCP → 8080`. */
function portsOf({ port, protocol, backends }: ServiceRoute): string {
  const numbers = [...new Set(backends.map((backend) => backend.port))]
  return `${port}/${protocol} → ${listOf(numbers.map(String))}`
}

/** The policy and its rule, or what holds without one. */
function whyOf({ direction, reason, reach }: ClientAnswer): string {
  const { object, path, code } = reason
  if (object === undefined) return code === 'policy.not-isolated' ? 'no policy' : reason.sentence
  const name = object.namespace === undefined ? object.name : `${object.namespace}/${object.name}`
  const rule = path === undefined || path === 'spec' ? '' : ` ${path}`
  return `${object.kind} ${name}${rule}${reach !== 'all' && direction === 'egress' ? ' (egress of the client)' : ''}`
}

function findingsOf({ service }: ServiceView, { route, answers }: PortAnswers): readonly ExplainFinding[] {
  const name = `port ${route.name === '' ? '' : `${route.name} `}${route.port}/${route.protocol}`
  const of = (reach: Reach): readonly ClientAnswer[] => answers.filter((answer) => answer.reach === reach)
  const about = service.meta
  const evidence = (found: readonly ClientAnswer[]): readonly string[] =>
    [...new Set(found.map(({ reason }) => reason.sentence))].slice(0, 5)
  const remedy = ([first]: readonly ClientAnswer[]): string =>
    first?.changes[0] ?? 'portolan policy eval tells each connection'
  const [none, some, unknown] = [of('none'), of('some'), of('unknown')]
  if (none.length === answers.length && answers.length > 0) {
    const message = `policies let nobody in to ${name}: neither a pod of the input nor an address outside`
    return [
      explainFinding('explain.policy-denies-all', { about, message, evidence: evidence(none), hint: remedy(none) }),
    ]
  }
  const clients = (found: readonly ClientAnswer[]): string => listOf(namesOf(found.map(({ client }) => client)), 3)
  return [
    ...(some.length === 0
      ? []
      : [
          explainFinding('explain.policy-backends-differ', {
            about,
            message: `${clients(some)} may reach some of the backends of ${name} and not others, so that part of the connections is dropped`,
            evidence: evidence(some),
            hint: remedy(some),
          }),
        ]),
    ...(unknown.length === 0
      ? []
      : [
          explainFinding('explain.policy-undecided', {
            about,
            message: `whether ${clients(unknown)} may reach ${name} is unknown`,
            evidence: evidence(unknown),
            hint: remedy(unknown),
          }),
        ]),
  ]
}
