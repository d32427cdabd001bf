/** The proof: the printed policies are read back and applied to the flows they came from, of which none may be denied. */
import type { DirectoryIndex } from '#flows/directory'
import { buildCluster } from '#manifests/build-cluster'
import { parseManifestText } from '#manifests/parse-text'
import { type Cluster, emptyCluster } from '#model/cluster'
import type { EndpointsSubset } from '#model/endpoint-slice'
import { ciliumSemantics } from '#trace/policy/cilium-semantics'
import { kubernetesSemantics } from '#trace/policy/k8s-semantics'
import { policiesFor } from '#trace/policy/lane'
import type { PolicyWorld } from '#trace/policy/policy-world'
import { preparePolicies } from '#trace/policy/world'
import { judgeEnds, newJudge, textOfRef } from '#verify/policy/audit-judge'
import { nameOfWorkload, ownParty } from '#verify/policy/audit-parties'
import { type Fact, factsOf, type Gathering } from './gather-flows'
import { untoldService } from './peer-rules'
import { type PolicyKind, policyName } from './policy-name'
import { portText } from './rule-draft'
import { type Surroundings, selectionOf } from './select-pods'

export type Proof = {
  /** What went through when it was seen: each pod, peer, direction and port once. */
  readonly connections: number
  /** Of which the policies allow so many, and of so many nobody can tell. */
  readonly allowed: number
  readonly unknown: number
  /** `namespace/policy` of policies that hold for a pod of their workload at which flows were recorded. */
  readonly held: ReadonlySet<string>
  /** Sentences: what the parser refuses of the policies, and what they would deny. Empty, or the generator has a bug. */
  readonly faults: readonly string[]
}

const mostFaults = 20

export type ProofInput = {
  readonly gathering: Gathering
  readonly surroundings: Surroundings
  readonly kind: PolicyKind
}

export function provePolicies(texts: readonly string[], { gathering, surroundings, kind }: ProofInput): Proof {
  const { index } = surroundings
  const { cluster, faults } = readBack(texts, index)
  const cilium = kind === 'ciliumnetworkpolicy' ? ciliumSemantics(cluster) : undefined
  const refused = (cilium?.findings ?? []).map(({ message }) => message)
  const world = preparePolicies(cluster, { semantics: cilium ?? kubernetesSemantics })
  const judge = newJudge(world, index, gathering.ends)
  let [connections, allowed, unknown] = [0, 0, 0]
  const denied: string[] = []
  for (const fact of factsOf(gathering)) {
    if (!fact.isAllowed) continue
    connections++
    const verdict = judgeEnds(judge, fact)
    const isUntold = untoldService(surroundings, fact.peer.identity, fact) !== undefined
    if (verdict.kind === 'allowed' && isUntold) unknown++
    else if (verdict.kind === 'allowed') allowed++
    else if (verdict.kind === 'unknown' || !canBeMeant(surroundings, fact)) unknown++
    else if (denied.length < mostFaults) {
      const by = verdict.denials.flatMap(({ policies }) => policies.map(textOfRef)).join(' and ')
      denied.push(`${by || 'a policy'} would deny ${describeFact(fact, verdict.peer)}, which was seen to pass`)
    }
  }
  const held = heldPolicies(world, index, gathering)
  return { connections, allowed, unknown, held, faults: [...faults, ...refused, ...denied].slice(0, mostFaults) }
}

/** Where no selector can mean one of the two it is an address in the rules, and as such nobody can tell whether it is let in. */
function canBeMeant(surroundings: Surroundings, { own, peer: { identity } }: Fact): boolean {
  const { namespace, labels } = own
  if (identity.kind === 'pod' && selectionOf(surroundings, identity) === undefined) return false
  return namespace === null || labels === null || selectionOf(surroundings, { ...own, namespace, labels }) !== undefined
}

function heldPolicies(world: PolicyWorld, index: DirectoryIndex, { ends }: Gathering): ReadonlySet<string> {
  const held = new Set<string>()
  for (const { end } of [...ends.own.values()].flat()) {
    const party = ownParty(world, index, end)
    if (party === undefined) continue
    const name = policyName(end.workload ?? { kind: 'Pod', name: end.name })
    const { policies } = policiesFor(world, 'ingress', party.of)
    const isHeld = policies.some(({ source: { object } }) => object.name === name && object.namespace === end.namespace)
    if (isHeld) held.add(`${end.namespace}/${name}`)
  }
  return held
}

function describeFact({ own, isEgress, port, protocol }: Fact, peer: string): string {
  const name = nameOfWorkload(own.namespace ?? '?', own.workload, own.name)
  return `${isEgress ? `${name} to ${peer}` : `${peer} to ${name}`} ${portText({ port, protocol })}`
}

/** Anything that a parser finds wrong of what was generated is a fault: an API server might refuse it. */
function readBack(
  texts: readonly string[],
  index: DirectoryIndex,
): { readonly cluster: Cluster; readonly faults: readonly string[] } {
  if (texts.length === 0) return { cluster: emptyCluster, faults: [] }
  const parsed = parseManifestText(texts.map((text) => `---\n${text}`).join(''), 'generated')
  const built = buildCluster(parsed.value)
  const found = [...parsed.findings, ...built.findings].filter(({ severity }) => severity !== 'info')
  const { networkPolicies, ciliumPolicies } = built.value
  const count = networkPolicies.size + ciliumPolicies.size
  const lost = count === texts.length ? [] : [`of ${texts.length} policies ${count} are read back`]
  return {
    cluster: { ...emptyCluster, networkPolicies, ciliumPolicies, endpoints: apiServerEndpoints(index) },
    faults: [
      ...(parsed.refusal === undefined ? [] : [parsed.refusal.message]),
      ...lost,
      ...found.map(({ message }) => message),
    ],
  }
}

/** Cilium knows the API server by them. */
function apiServerEndpoints({ apiServers }: DirectoryIndex): Cluster['endpoints'] {
  if (apiServers.size === 0) return new Map()
  const addresses = [...apiServers.keys()].map((ip) => ({ ip }))
  const subset: EndpointsSubset = { addresses, notReadyAddresses: [], ports: [] }
  const meta = {
    kind: 'Endpoints',
    name: 'kubernetes',
    namespace: 'default',
    labels: {},
    annotations: {},
    ownerReferences: [],
    origin: { file: 'flows' },
    assumed: [],
  }
  return new Map([['default/kubernetes', { meta, subsets: [subset] }]])
}
