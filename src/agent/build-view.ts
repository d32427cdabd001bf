/** What the agent tells of its node at one moment: read from the datapath when it is asked for. */
import { Failure } from '#base/failure'
import type { CompiledPolicy } from '#compile/traffic-policy/compile-policy'
import { defaultDenyAll } from '#compile/traffic-policy/default-deny-all'
import { ruleNameHash } from '#compile/traffic-policy/print-snapshot'
import type { Snapshot } from '#compile/traffic-policy/snapshot'
import type { DirectionView, InstalledView, InterfaceView, RuleView } from '#enforce/node-view'
import { bothDirections, type NodePlan, type Place, type PlannedInterface } from '#enforce/plan-node'
import type { Wanted } from '#enforce/wanted-node'
import type { AgentDatapath } from './agent-datapath'

type Known = {
  readonly namespace?: string
  readonly name: string
  readonly rules: Map<bigint, string>
  /** What the names were learnt of last: hashing them again at each pass would be most of its work. */
  learnt?: CompiledPolicy
}

/** Names of policies and rules by UID: a snapshot holds a policy's UID and hashes of its rules' names alone. */
export type NameBook = Map<string, Known>

/** What is installed may be older than what is wanted: names are kept while their policy is wanted or bound anywhere. */
export function learnNames(book: NameBook, plan: NodePlan, boundUids: ReadonlySet<string>): void {
  const wanted = plan.interfaces.flatMap(({ wanted: { directions } }) => bothDirections.map((one) => directions[one]))
  const uids = new Set(wanted.flatMap((one) => (one.kind === 'nothing' ? [] : [uidOf(one)])))
  for (const uid of book.keys()) if (!uids.has(uid) && !boundUids.has(uid)) book.delete(uid)
  for (const one of wanted) {
    if (one.kind === 'nothing') continue
    const { name, namespace } = one
    const known: Known = book.get(uidOf(one)) ?? {
      name,
      ...(namespace !== undefined && { namespace }),
      rules: new Map(),
    }
    book.set(uidOf(one), known)
    if (one.kind !== 'policy' || known.learnt === one.compiled) continue
    known.learnt = one.compiled
    for (const rule of one.compiled.rules) known.rules.set(ruleNameHash(rule.name), rule.name)
  }
}

function uidOf(wanted: Exclude<Wanted, { readonly kind: 'nothing' }>): string {
  return wanted.kind === 'policy' ? wanted.compiled.uid : wanted.uid
}

type Tools = { readonly datapath: AgentDatapath; readonly book: NameBook; readonly missed: () => void }

/** `missed` is called for each row that could not be read. */
export function viewInterface({ wanted, row }: PlannedInterface, tools: Tools): InterfaceView | undefined {
  if (wanted.interface === undefined) return undefined
  const { kind, namespace, attachment, vpc } = wanted
  const directions = bothDirections.map(
    (direction): DirectionView =>
      row === undefined ? { direction } : viewDirection({ slot: row.slot, direction }, row.token, tools),
  )
  return { kind, namespace, attachment, vpc, interface: wanted.interface, directions }
}

function viewDirection(place: Place, token: bigint, tools: Tools): DirectionView {
  const { datapath } = tools
  const { direction } = place
  const bound = datapath.published(place)
  const snapshot = bound?.snapshot
  const fallbacks = orMissed(tools, () => datapath.readFallbacks(place.slot, direction))
  const isUnreadable = bound !== undefined && snapshot === undefined
  const installed = isUnreadable ? unreadable : snapshot?.token === token ? viewInstalled(snapshot, tools) : undefined
  return { direction, ...(installed !== undefined && { installed }), ...(fallbacks !== undefined && { fallbacks }) }
}

/** It decides packets, and whose it is is not known. */
const unreadable: InstalledView = { policyUid: '', generation: 0 }

function viewInstalled(snapshot: Snapshot, tools: Tools): InstalledView {
  const { policyUid, generation } = snapshot
  const known = tools.book.get(policyUid)
  const rules = snapshot.rules.map(({ nameHash, action, counterRow }, index): RuleView => {
    const count = orMissed(tools, () => tools.datapath.readRule(counterRow))
    // A rule that the policy has no more is told by its number.
    return { name: known?.rules.get(nameHash) ?? `#${index}`, action, ...count }
  })
  const isBuiltIn = policyUid === defaultDenyAll.uid
  return {
    ...(known?.namespace !== undefined && { policyNamespace: known.namespace }),
    ...(known !== undefined && !isBuiltIn && { policyName: known.name }),
    policyUid,
    generation,
    rules,
  }
}

function orMissed<T>({ missed }: Tools, read: () => T | undefined): T | undefined {
  const value = readOrUndefined(read)
  if (value === undefined) missed()
  return value
}

function readOrUndefined<T>(read: () => T | undefined): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
}
