/** Flows and directories for tests, in few words. */
import { load } from 'js-yaml'
import { type Directory, emptyDirectory, type KnownPod, type KnownService } from '#flows/directory'
import { type Instant, parseInstant } from '#flows/instant'
import type { ObservedFlow, ObservedPeer } from '#flows/observed-flow'
import type { TargetChoice } from '../choose-targets'
import { gatherFlows, startGathering } from '../gather-flows'
import { type Generated, type GenerateOptions, generatePolicies, type PolicyKind } from '../generate-policies'

export const at = (text: string): Instant => parseInstant(text) ?? Number.NaN

export type FlowWords = Partial<Omit<ObservedFlow, 'pod' | 'peer'>> & {
  readonly pod?: Partial<ObservedFlow['pod']>
  readonly peer?: Partial<ObservedPeer> | null
  readonly time?: string
  readonly port?: number
}

/** Of `shop/db-0` of StatefulSet db, from `shop/web` of a Deployment, unless told otherwise. */
export function observed({ pod, peer, time = '2026-07-23T10:00:00', port, ...rest }: FlowWords = {}): ObservedFlow {
  const direction = rest.direction ?? 'INGRESS'
  return {
    firstSeen: at(time),
    lastSeen: at(time),
    hits: 1,
    direction,
    protocol: 'TCP',
    ownPort: direction === 'INGRESS' ? (port ?? 3306) : 0,
    peerAddress: '10.244.1.11',
    peerPort: direction === 'EGRESS' ? (port ?? 80) : 51_000,
    decision: 'ALLOW',
    outcome: peer === null ? { kind: 'never-held' } : { kind: 'resolved' },
    ...rest,
    pod: {
      namespace: 'shop',
      name: 'db-0',
      uid: 'uid-db-0',
      address: '10.244.1.30',
      workload: { kind: 'StatefulSet', name: 'db' },
      labels: { app: 'db' },
      ...pod,
    },
    peer: peer === null ? null : peerOf(peer),
  }
}

export function peerOf(words: Partial<ObservedPeer> = {}): ObservedPeer {
  return {
    kind: 'pod',
    namespace: 'shop',
    name: 'web-1',
    uid: 'uid-web-1',
    workload: words.kind === 'service' ? null : { kind: 'Deployment', name: 'web' },
    labels: words.kind === 'service' ? null : { app: 'web' },
    ...words,
  }
}

export function knownPod(words: Partial<KnownPod> = {}): KnownPod {
  return {
    namespace: 'shop',
    name: 'web-1',
    uid: 'uid-web-1',
    labels: { app: 'web' },
    hasAllLabels: true,
    addresses: ['10.244.1.11'],
    isHostNetwork: false,
    nodeName: null,
    workload: { kind: 'Deployment', name: 'web' },
    startedAt: at('2026-07-01T00:00:00'),
    lastSeen: at('2026-07-24T00:00:00'),
    isDead: false,
    diedAt: null,
    deathReason: null,
    ports: null,
    ...words,
  }
}

export function knownService(words: Partial<KnownService> = {}): KnownService {
  return {
    namespace: 'shop',
    name: 'web',
    uid: null,
    addresses: ['10.96.1.20'],
    selector: { app: 'web' },
    ports: [{ protocol: 'TCP', port: 80, targetPort: 8080, nodePort: 0 }],
    endpoints: [],
    createdAt: null,
    deletedAt: null,
    ...words,
  }
}

export function directory(words: Partial<Directory> = {}): Directory {
  return { ...emptyDirectory, ...words }
}

export type Asked = Partial<Omit<GenerateOptions, 'choice'>> & {
  readonly choice?: TargetChoice
  readonly known?: Directory
}

export function generate(
  flows: readonly ObservedFlow[],
  { known = emptyDirectory, ...options }: Asked = {},
): Generated {
  const gathering = gatherFlows(startGathering(known), flows)
  return generatePolicies(gathering, { kind: 'networkpolicy', choice: {}, ...options })
}

type Document = {
  readonly metadata: { readonly name: string; readonly namespace: string }
  readonly spec: Readonly<Record<string, unknown>>
}

/** The parsed document and its comments, of the one policy of a workload. */
export function policyOf(
  flows: readonly ObservedFlow[],
  asked: Asked & { readonly of?: string } = {},
): { readonly text: string; readonly spec: Readonly<Record<string, unknown>>; readonly comments: readonly string[] } {
  const generated = generate(flows, asked)
  const wanted = asked.of ?? 'db'
  const policy = generated.policies.find(({ target }) => target.name === wanted)
  if (policy === undefined) throw new RangeError(`no policy of ${wanted}: ${JSON.stringify(generated.findings)}`)
  if (generated.proof.faults.length > 0) throw new RangeError(generated.proof.faults.join('\n'))
  const { spec } = load(policy.text) as Document
  return { text: policy.text, spec, comments: commentsIn(policy.text) }
}

export function commentsIn(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.startsWith('#'))
    .map((line) => line.slice(2))
}

export const both: readonly PolicyKind[] = ['networkpolicy', 'ciliumnetworkpolicy']
