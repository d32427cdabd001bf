/** What each interface of one node is to have: the resolution table of the sheet, for workloads and for edge links. */
import { compareText } from '#base/text'
import type { CompiledPolicy } from '#compile/traffic-policy/compile-policy'
import { compiledDefaultDenyAll, defaultDenyAll } from '#compile/traffic-policy/default-deny-all'
import type { Direction } from '#compile/traffic-policy/entry'
import { compareBindings } from '#compile/traffic-policy/lint-traffic-policies'
import type { Cluster } from '#model/cluster'
import { keyOf, type Meta } from '#model/meta'
import {
  type EdgeAttachment,
  type TrafficPolicy,
  type TrafficPolicyBinding,
  uidOf,
  type VpcAttachment,
} from '#model/traffic-policy'
import { isAdmitted, whyGateIsClosed } from './edge-gate'
import { resolveReference } from './resolve-reference'

/** What one direction is to have. */
export type Wanted =
  | {
      readonly kind: 'policy'
      readonly name: string
      /** Absent for the built-in policy. */
      readonly namespace?: string
      readonly compiled: CompiledPolicy
      /** The text tells no generation, so that other content of the same one is an edit and no other compiler. */
      readonly isUnnumbered: boolean
      /** The built-in policy for want of a binding, which may be among objects that could not be read. */
      readonly lacksBinding?: true
    }
  | {
      readonly kind: 'uncompilable'
      readonly name: string
      readonly namespace: string
      readonly uid: string
      readonly message: string
    }
  /** No policy is there to be bound: of a reference that leads nowhere, or behind a closed gate. */
  | { readonly kind: 'nothing'; readonly message: string; readonly absent?: Absent }

/** What is named is not among the objects; where they were read in part it may be there all the same. */
export type Absent = {
  /** UIDs of policies that it is not: they are there, by other names. */
  readonly others: ReadonlySet<string>
}

export type WantedDirections = Readonly<Record<Direction, Wanted>>

/** The object that a status entry belongs to. */
export type BindingOfInterface = {
  readonly namespace: string
  readonly name: string
  readonly uid?: string
  readonly generation: number
}

export type WantedInterface = {
  readonly kind: 'VPCAttachment' | 'EdgeAttachment'
  readonly namespace: string
  readonly attachment: string
  /** Empty when it is not known. */
  readonly vpc: string
  /** The device's name, once the attachment tells it. */
  readonly interface?: string
  /** The attachment that has the interface instead, as `Kind namespace/name`. */
  readonly takenBy?: string
  /** Absent without a binding, and for edge links, which have no status. */
  readonly binding?: BindingOfInterface
  readonly directions: WantedDirections
}

/** The kinds that say what a node's interfaces are to have. */
export type TrafficObjects = Pick<
  Cluster,
  'trafficPolicies' | 'trafficPolicyBindings' | 'vpcAttachments' | 'edgeServices' | 'edgeAttachments'
>

type Draft = WantedInterface & { readonly created: string }

/** In the order of the objects, workloads before edges. */
export function wantedOfNode(objects: TrafficObjects, node: string): readonly WantedInterface[] {
  const wanted = resolverOf(objects)
  const bindings = bindingsByAttachment(objects)
  const isHere = ({ status }: { readonly status?: { readonly node?: string } }): boolean => status?.node === node
  const workloads = [...objects.vpcAttachments.values()]
    .filter(isHere)
    .map((attachment) => workloadOf(attachment, { wanted, binding: bindings.get(keyOf(attachment.meta)) }))
  const edges = [...objects.edgeAttachments.values()]
    .filter(isHere)
    .map((attachment) => edgeOf(attachment, objects, wanted))
  return settleClaims([...workloads, ...edges])
}

type Resolver = (namespace: string, reference: { readonly name: string } | undefined) => Wanted

/** Each policy is compiled once, however many interfaces it is bound to. */
function resolverOf(objects: TrafficObjects): Resolver {
  const known = new Map<string, Wanted>()
  const uids = [...objects.trafficPolicies.values()].map(({ meta }) => uidOf(meta))
  const absent: Absent = { others: new Set([...uids, defaultDenyAll.uid]) }
  return (namespace, reference) => {
    const key = `${namespace}/${reference?.name ?? ''}`
    const found = known.get(key) ?? wantedOf({ objects, absent }, namespace, reference)
    known.set(key, found)
    return found
  }
}

const builtIn = {
  kind: 'policy',
  name: defaultDenyAll.name,
  compiled: compiledDefaultDenyAll,
  isUnnumbered: false,
} as const satisfies Wanted

const withoutBinding: Wanted = { ...builtIn, lacksBinding: true }

type ResolverContext = { readonly objects: TrafficObjects; readonly absent: Absent }

function wantedOf(
  { objects, absent }: ResolverContext,
  namespace: string,
  reference: { readonly name: string } | undefined,
): Wanted {
  const resolution = resolveReference(objects, namespace, reference)
  switch (resolution.kind) {
    case 'default':
      return builtIn
    case 'policy':
      return policyOf(resolution.policy, resolution.compiled)
    case 'invalid': {
      const { meta } = resolution.policy
      const { message } = resolution
      return { kind: 'uncompilable', name: meta.name, namespace: meta.namespace, uid: uidOf(meta), message }
    }
    case 'missing':
      return { kind: 'nothing', message: resolution.message, absent }
    case 'foreign':
      return { kind: 'nothing', message: resolution.message }
  }
  return resolution satisfies never
}

function policyOf({ meta }: TrafficPolicy, compiled: CompiledPolicy): Wanted {
  const isUnnumbered = meta.assumed.includes('metadata.generation')
  return { kind: 'policy', name: meta.name, namespace: meta.namespace, compiled, isUnnumbered }
}

/** Of two bindings of one attachment the older counts, and the other concerns no node. */
function bindingsByAttachment({ trafficPolicyBindings }: TrafficObjects): ReadonlyMap<string, TrafficPolicyBinding> {
  const counting = new Map<string, TrafficPolicyBinding>()
  for (const binding of [...trafficPolicyBindings.values()].sort(compareBindings)) {
    const { meta, spec } = binding
    const key = `${meta.namespace}/${spec?.vpcAttachmentRef.name}`
    if (spec !== undefined && !counting.has(key)) counting.set(key, binding)
  }
  return counting
}

type WorkloadContext = { readonly wanted: Resolver; readonly binding: TrafficPolicyBinding | undefined }

function workloadOf({ meta, spec, status }: VpcAttachment, { wanted, binding }: WorkloadContext): Draft {
  const directionOf = (reference: { readonly name: string } | undefined): Wanted =>
    binding === undefined ? withoutBinding : wanted(meta.namespace, reference)
  return {
    ...identityOf(meta, status?.hostInterface),
    kind: 'VPCAttachment',
    vpc: spec?.vpc?.name ?? status?.vpc ?? '',
    ...(binding !== undefined && { binding: bindingOf(binding) }),
    directions: {
      ingress: directionOf(binding?.spec?.ingressPolicyRef),
      egress: directionOf(binding?.spec?.egressPolicyRef),
    },
  }
}

function bindingOf({ meta, generation }: TrafficPolicyBinding): BindingOfInterface {
  const { namespace, name, uid } = meta
  return { namespace, name, ...(uid !== undefined && { uid }), generation }
}

/** A service that could not be read may name any. */
const anyPolicy: Absent = { others: new Set() }

/** The service's namespace alone chooses the policies: the provider has no say. */
function edgeOf(attachment: EdgeAttachment, { edgeServices }: TrafficObjects, wanted: Resolver): Draft {
  const { meta, spec, status } = attachment
  const { namespace = '', name = '' } = spec?.serviceRef ?? {}
  const service = edgeServices.get(`${namespace}/${name}`)
  const closed = whyGateIsClosed(attachment, service)
  const absent = service === undefined && isAdmitted(attachment) ? { absent: anyPolicy } : {}
  const policies = service?.spec?.trafficPolicy
  const directionOf = (reference: { readonly name: string } | undefined): Wanted =>
    closed === undefined ? wanted(namespace, reference) : { kind: 'nothing', message: closed, ...absent }
  return {
    ...identityOf(meta, status?.hostInterface),
    kind: 'EdgeAttachment',
    vpc: service?.spec?.vpcRef.name ?? '',
    directions: { ingress: directionOf(policies?.ingressPolicyRef), egress: directionOf(policies?.egressPolicyRef) },
  }
}

function identityOf(meta: Meta, hostInterface: string | undefined) {
  return {
    namespace: meta.namespace,
    attachment: meta.name,
    created: meta.creationTimestamp ?? '',
    ...(hostInterface !== undefined && { interface: hostInterface }),
  }
}

/** An interface is one attachment's: the oldest has it, of one age the lesser name. */
function settleClaims(drafts: readonly Draft[]): readonly WantedInterface[] {
  const holders = new Map<string, Draft>()
  for (const draft of [...drafts].sort(compareClaims)) {
    if (draft.interface !== undefined && !holders.has(draft.interface)) holders.set(draft.interface, draft)
  }
  return drafts.map(({ created: _, ...draft }) => {
    const holder = holders.get(draft.interface ?? '')
    if (holder === undefined || claimOf(holder) === claimOf(draft)) return draft
    return { ...draft, takenBy: claimOf(holder) }
  })
}

function compareClaims(one: Draft, other: Draft): number {
  return compareText(one.created, other.created) || compareText(claimOf(one), claimOf(other))
}

function claimOf({ kind, namespace, attachment }: WantedInterface): string {
  return `${kind} ${namespace}/${attachment}`
}
