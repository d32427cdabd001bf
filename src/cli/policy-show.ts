/** `portolan policy show`: what an attachment's two directions are to have, and what this node's datapath has for them. */
import { hostname } from 'node:os'
import { type Command, Option } from 'commander'
import { Failure } from '#base/failure'
import { listOf } from '#base/text'
import { compiledDefaultDenyAll, defaultDenyAll } from '#compile/traffic-policy/default-deny-all'
import { type Direction, pathClasses } from '#compile/traffic-policy/entry'
import { ruleNameHash } from '#compile/traffic-policy/print-snapshot'
import type { Snapshot } from '#compile/traffic-policy/snapshot'
import { mergeStatuses } from '#enforce/merge-status'
import { printPathPrefixes } from '#enforce/path-prefixes'
import { findRow } from '#enforce/plan-node'
import { type Wanted, type WantedInterface, wantedOfNode } from '#enforce/wanted-node'
import type { NodeMode } from '#kernel/node-mode'
import type { DatapathReading, DirectionReading } from '#kernel/read-datapath'
import type { Cluster } from '#model/cluster'
import { keyOf } from '#model/meta'
import { uidOf } from '#model/traffic-policy'
import { addBpffsOption, type BpffsOption, openNative } from './bpffs-option'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'
import { addObjectOptions } from './options'
import {
  printPolicyShow,
  type ShownAttachment,
  type ShownDirection,
  type ShownRule,
  type ShownSnapshot,
  type ShownStatus,
} from './print-policy-show'
import { type ObjectFlags, readObjects } from './read-inputs-objects'

type ShowOptions = BpffsOption &
  ObjectFlags & {
    readonly node?: string
    readonly status?: string
    readonly output: 'text' | 'json' | 'yaml'
  }

/** What the node says of itself; a test puts its own in the place of the kernel's. */
export type OpenNode = (io: Io, folder: string) => Promise<OpenedNode>
export type OpenedNode = {
  readonly mode: NodeMode['mode']
  /** Or why there is none to read. */
  readonly datapath: DatapathReading | { readonly why: string }
}

export function addPolicyShow(policy: Command, context: CommandContext): void {
  addPolicyShowWith(policy, context, openKernelNode)
}

export function addPolicyShowWith(policy: Command, { io, end }: CommandContext, open: OpenNode): void {
  const command = policy
    .command('show')
    .description('say what an interface’s policies are on this node: status, bound snapshot, and each rule’s counters')
    .argument(
      '<ns/attachment>',
      'a VPCAttachment or an EdgeAttachment of the objects given by --from, or of the cluster',
    )
  addObjectOptions(command)
    .option('--node <name>', 'the node that this is (default: this machine’s name)')
    .option('--status <dir>', 'the folder that agents write their status into (default: what the objects hold)')
  addBpffsOption(command)
    .addOption(new Option('-o, --output <format>', 'output').choices(['text', 'json', 'yaml']).default('text'))
    .action(async (name: string, options: ShowOptions) => {
      end(await runPolicyShow(io, { name, ...options }, open))
    })
}

type Asked = ShowOptions & { readonly name: string }

async function runPolicyShow(io: Io, asked: Asked, open: OpenNode): Promise<ExitCode> {
  const { name, node = hostname() } = asked
  if (!/^[^/]+\/[^/]+$/.test(name)) {
    throw new Failure('usage.bad-argument', `"${name}" is no attachment's name; write NAMESPACE/NAME`)
  }
  const cluster = await readShown(io, asked)
  const here = wantedOfNode(cluster, node).filter((one) => `${one.namespace}/${one.attachment}` === name)
  if (here.length === 0) {
    io.out(`${whereElse(cluster, name, node)}\n`)
    return 1
  }
  const { mode, datapath } = await open(io, asked.bpffs)
  try {
    const context = { cluster, node, mode, datapath }
    io.out(
      printPolicyShow(
        here.map((wanted) => showAttachment(wanted, context)),
        asked.output,
      ),
    )
  } finally {
    if (!('why' in datapath)) datapath.close()
  }
  return 'why' in datapath ? 3 : 0
}

async function readShown(io: Io, { status, ...flags }: Asked): Promise<Cluster> {
  const { cluster } = await readObjects(io, flags, { command: 'policy show' })
  if (status === undefined) return cluster
  const { readStatusFolder } = await import('#sources/status-folder')
  const said = readStatusFolder(status)
  for (const trouble of said.troubles) io.err(`${trouble}\n`)
  return mergeStatuses(cluster, said)
}

async function openKernelNode(io: Io, folder: string): Promise<OpenedNode> {
  try {
    const native = await openNative(io)
    const { readNodeMode } = await import('#kernel/node-mode')
    const { readDatapath } = await import('#kernel/read-datapath')
    const mode = readNodeMode({ folder, native })
    const datapath = attempt(() => readDatapath({ folder, native }))
    const isAbsent = 'why' in datapath && mode.mode === 'unknown'
    return { mode: mode.mode, datapath: isAbsent ? { why: mode.reasons.join('; ') } : datapath }
  } catch (error) {
    if (error instanceof Failure) return { mode: 'unknown', datapath: { why: error.message } }
    throw error
  }
}

function attempt<T>(work: () => T): T | { readonly why: string } {
  try {
    return work()
  } catch (error) {
    if (error instanceof Failure) return { why: error.message }
    throw error
  }
}

function whereElse({ vpcAttachments, edgeAttachments }: Cluster, name: string, node: string): string {
  const found = [vpcAttachments.get(name), edgeAttachments.get(name)].filter((one) => one !== undefined)
  const [first] = found
  if (first === undefined) {
    const known = [...vpcAttachments.keys(), ...edgeAttachments.keys()].sort()
    const those =
      known.length === 0
        ? 'it holds none at all; check --from'
        : `it holds ${listOf(known.slice(0, 8))}${known.length > 8 ? ' and more' : ''}`
    return `there is no VPCAttachment and no EdgeAttachment ${name} in the input; ${those}`
  }
  const holder = found.map(({ status }) => status?.node).find((one) => one !== undefined)
  if (holder === undefined)
    return `${first.meta.kind} ${name} is on no node yet; whoever places the workload writes status.node`
  return `${first.meta.kind} ${name} is on node ${holder}, and this is ${node}; ask there, or add --node ${holder} if this is it`
}

type Context = { readonly cluster: Cluster; readonly node: string } & OpenedNode

function showAttachment(wanted: WantedInterface, context: Context): ShownAttachment {
  const { cluster, node, mode, datapath } = context
  const entry = entryOf(wanted, context)
  const row = 'why' in datapath ? 'unknown' : findHere(wanted, datapath)
  const directions = (['ingress', 'egress'] as const).map((direction): ShownDirection => {
    const reading = 'why' in datapath || typeof row === 'string' ? undefined : datapath.direction(row.slot, direction)
    const isOwn = typeof row !== 'string' && reading?.bound?.snapshot?.token === row.token
    const snapshot = isOwn && reading !== undefined ? showSnapshot(cluster, reading) : null
    return {
      direction,
      wanted: printWanted(wanted.directions[direction]),
      status: showStatus(entry, direction),
      snapshot,
      noSnapshot: snapshot === null ? whyNone(row, reading) : null,
      fallbacks: showFallbacks(reading),
    }
  })
  const { kind, namespace, attachment, interface: device = '', vpc } = wanted
  const chosenBy = chooserOf(wanted, cluster)
  return {
    kind,
    attachment: `${namespace}/${attachment}`,
    node,
    interface: device,
    vpc,
    pathPrefixes: 'why' in datapath || typeof row === 'string' ? null : showPaths(row.vpc, datapath),
    mode,
    unread: 'why' in datapath ? datapath.why : null,
    chosenBy,
    directions,
  }
}

function findHere({ interface: name, takenBy }: WantedInterface, datapath: DatapathReading) {
  if (takenBy !== undefined)
    return `none: the interface is that of ${takenBy}; ask for that one, or correct status.hostInterface of one of them`
  const rows = datapath.interfaces.map((held) => ({ ...held, isHere: datapath.isHere(held) }))
  return findRow(name, rows)
}

/** Undefined classes are those of a newer version. */
function showPaths(vpc: number, datapath: DatapathReading): string | null {
  if (vpc === 0) return null
  const own = datapath.pathPrefixes().flatMap(({ pathClass, ...one }) => {
    const path = pathClasses[pathClass]
    return one.vpc === vpc && path !== undefined ? [{ ...one, path }] : []
  })
  return `by networks of VPC ${vpc}: ${own.length === 0 ? 'none are set' : printPathPrefixes(own)}`
}

function whyNone(row: string | object, reading: DirectionReading | undefined): string {
  if (reading === undefined) return typeof row === 'string' ? row : 'unknown'
  if (reading.bound === undefined)
    return 'none: every packet is denied as policy_unavailable; the policy and the status above say why'
  return reading.bound.snapshot === undefined
    ? 'bound, and it cannot be read: its pin is lost, or a newer version wrote it; a running agent publishes it anew within five minutes'
    : 'bound, and made for an earlier lifetime of the interface; the agent publishes anew'
}

function printWanted(wanted: Wanted): string {
  switch (wanted.kind) {
    case 'policy': {
      const { namespace, name, compiled } = wanted
      return namespace === undefined
        ? `${name} (built in)`
        : `TrafficPolicy ${namespace}/${name}, generation ${compiled.generation}`
    }
    case 'uncompilable':
    case 'nothing':
      return `none: ${wanted.message}`
  }
  return wanted satisfies never
}

function chooserOf({ kind, namespace, attachment, binding }: WantedInterface, { edgeAttachments }: Cluster): string {
  if (binding !== undefined) {
    return `TrafficPolicyBinding ${binding.namespace}/${binding.name}, generation ${binding.generation}`
  }
  if (kind === 'VPCAttachment') return 'no binding: the built-in policy, both ways'
  const service = edgeAttachments.get(`${namespace}/${attachment}`)?.spec?.serviceRef
  return service === undefined ? 'no service' : `EdgeService ${service.namespace}/${service.name}`
}

function entryOf({ binding }: WantedInterface, { cluster, node }: Context) {
  if (binding === undefined) return undefined
  const status = cluster.trafficPolicyBindings.get(`${binding.namespace}/${binding.name}`)?.status
  return status?.nodes?.find((one) => one.node === node)
}

function showStatus(entry: ReturnType<typeof entryOf>, direction: Direction): ShownStatus | null {
  const said = entry?.[direction]
  if (entry === undefined || said === undefined) return null
  const { state, observedGeneration, lastTransitionTime: since, message = null } = said
  return { state, observedGeneration, since, heartbeat: entry.heartbeatTime ?? null, message }
}

function showSnapshot(cluster: Cluster, { bound, counts }: DirectionReading): ShownSnapshot | null {
  const snapshot = bound?.snapshot
  if (snapshot === undefined) return null
  const known = findPolicy(cluster, snapshot)
  const isAgreed = known?.generation === snapshot.generation
  const rules = snapshot.rules.map(({ nameHash, action }, index): ShownRule => {
    const name = known?.names[index]
    // A text without a generation may have been edited all the same: the snapshot's hash tells.
    const isSame = isAgreed && name !== undefined && ruleNameHash(name) === nameHash
    const { hits, bytes } = counts[index] ?? {}
    return { name: isSame ? name : null, index, action, hits: asNumber(hits), bytes: asNumber(bytes) }
  })
  const { policyUid: uid, generation, publication, stateful, entries } = snapshot
  return {
    policy: known?.key ?? null,
    uid,
    generation,
    clusterGeneration: known?.generation ?? null,
    publication,
    stateful,
    entries: entries.length,
    rules,
  }
}

type KnownPolicy = { readonly key: string; readonly generation: number; readonly names: readonly string[] }

function findPolicy({ trafficPolicies }: Cluster, { policyUid }: Snapshot): KnownPolicy | undefined {
  if (policyUid === defaultDenyAll.uid) {
    const { name, generation } = defaultDenyAll
    return { key: name, generation, names: compiledDefaultDenyAll.rules.map((rule) => rule.name) }
  }
  const policy = [...trafficPolicies.values()].find(({ meta }) => uidOf(meta) === policyUid)
  if (policy === undefined) return undefined
  const names = policy.spec?.rules.map(({ name }) => name) ?? []
  return { key: keyOf(policy.meta), generation: policy.generation, names }
}

function showFallbacks(reading: DirectionReading | undefined): ShownDirection['fallbacks'] {
  if (reading?.fallbacks === undefined) return null
  return Object.fromEntries(Object.entries(reading.fallbacks).map(([reason, hits]) => [reason, Number(hits)]))
}

function asNumber(count: bigint | undefined): number | null {
  return count === undefined ? null : Number(count)
}
