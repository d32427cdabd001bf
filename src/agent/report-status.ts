/** What the node says of its bindings: written when it says something else, as a sign of life, and taken back. */
import { Failure } from '#base/failure'
import { describeProblems } from '#compile/traffic-policy/compile-policy'
import type { NodeMode } from '#enforce/node-view'
import type { DirectionState } from '#enforce/plan-direction'
import { heartbeatDue, nextEntry, type StatusEntry } from '#enforce/status-entry'
import type { Cluster } from '#model/cluster'
import type { TrafficPolicyBinding } from '#model/traffic-policy'
import { printStatusPatch, type StatusObject } from '#wire/status-file'
import type { AgentLog } from './agent-log'
import type { InterfaceState } from './reconcile'
import type { StatusSink } from './status-sink'

export type ReportFacts = {
  readonly cluster: Pick<Cluster, 'trafficPolicyBindings'>
  /** Objects were read in part: an entry is not taken back because its binding is not there. */
  readonly isPartial: boolean
  readonly states: readonly InterfaceState[]
  readonly mode: NodeMode
  readonly now: number
}

export type Report = {
  /** When the next heartbeat is due; undefined with no entry. */
  readonly heartbeatAt?: number
  readonly isWritten: boolean
}

export type Reporter = {
  /** Looks at what stands there now; false where it is not what was written last, which the next report makes good. */
  readonly isAsWritten: () => Promise<boolean>
  readonly report: (facts: ReportFacts) => Promise<Report>
  /** Why statuses keep not being written; undefined of what failed once. */
  readonly trouble: () => string | undefined
  /** What this node's agent told of its mode before this one began, if that was one that decides. */
  readonly modeBefore: 'Enforce' | 'Audit' | undefined
}

type Written = { readonly object: StatusObject; readonly entry: StatusEntry }
type Said = {
  readonly object: StatusObject
  readonly generation: number
  readonly directions: InterfaceState['directions']
}

type Options = { readonly node: string; readonly status: StatusSink; readonly log: AgentLog }

export async function openReporter({ node, status, log }: Options): Promise<Reporter> {
  const written = new Map<string, Written>()
  for (const { metadata, status: said } of await status.load()) {
    const entry = said.nodes.find((one) => one.node === node)
    if (entry !== undefined) written.set(nameOf(metadata), { object: metadata, entry })
  }
  const modes = [...written.values()].map(({ entry }) => entry.mode)
  /** Bindings whose entry was changed or taken away by another hand. */
  const strayed = new Set<string>()
  const writing = tellTroubles(log)
  const reading = tellTroubles(log)
  const isAsWritten = async (): Promise<boolean> => {
    const found = new Map<string, Written>()
    const isRead = await reading.attempt(async () => {
      for (const { metadata, status: said } of await status.load()) {
        const entry = said.nodes.find((one) => one.node === node)
        if (entry !== undefined) found.set(nameOf(metadata), { object: metadata, entry })
      }
    })
    reading.finish()
    for (const [name, { entry }] of written) {
      if (!isRead || JSON.stringify(found.get(name)?.entry) !== JSON.stringify(entry)) strayed.add(name)
    }
    // What this agent never wrote goes, as what it says no more.
    const foreign = [...found].filter(([name]) => !written.has(name))
    for (const [name, one] of foreign) written.set(name, one)
    return strayed.size === 0 && foreign.length === 0
  }
  return {
    isAsWritten,
    trouble: writing.trouble,
    modeBefore: (['Enforce', 'Audit'] as const).find((mode) => modes.includes(mode)),
    async report({ cluster, isPartial, states, mode, now }) {
      const said = [...states.flatMap(ofBinding), ...refusedBindings(cluster, states, written)]
      let isWritten = true
      const beats: number[] = []
      for (const { object, generation, directions } of said) {
        const known = written.get(nameOf(object))
        const before = known?.object.uid === object.uid ? known?.entry : undefined
        const facts = { node, mode, generation, directions, before, now }
        const entry = nextEntry(facts) ?? (strayed.has(nameOf(object)) ? before : undefined)
        const ok = entry === undefined || (await writing.attempt(() => status.write(printStatusPatch(object, entry))))
        if (ok && entry !== undefined) written.set(nameOf(object), { object, entry })
        if (ok) strayed.delete(nameOf(object))
        if (ok) beats.push(heartbeatDue(entry ?? before) ?? now)
        else isWritten = false
      }
      const names = new Set(said.map(({ object }) => nameOf(object)))
      for (const [name, { object }] of written) {
        if (names.has(name) || isPartial) continue
        const ok = await writing.attempt(() => status.remove(object))
        if (ok) {
          written.delete(name)
          strayed.delete(name)
        } else isWritten = false
      }
      writing.finish()
      return { isWritten, ...(beats.length > 0 && { heartbeatAt: Math.min(...beats) }) }
    },
  }
}

type Troubles = {
  /** What cannot be written now is written at a later pass: what was written last is remembered, not what was tried. */
  readonly attempt: (work: () => Promise<void>) => Promise<boolean>
  /** At the end of a round: a disk that is full fails every file of it, which is one line, and again at each retry, which is none. */
  readonly finish: () => void
  /** Of two rounds that followed each other. */
  readonly trouble: () => string | undefined
}

function tellTroubles(log: AgentLog): Troubles {
  /** Since a round had none. */
  const told = new Set<string>()
  let failures: string[] = []
  let roundsWithFailures = 0
  let last: string | undefined
  return {
    async attempt(work) {
      try {
        await work()
        return true
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        failures.push(error.message)
        return false
      }
    },
    finish() {
      const [first, ...more] = failures
      last = first === undefined || more.length === 0 ? first : `${first} (and ${more.length} more)`
      if (first === undefined) told.clear()
      else if (last !== undefined && !told.has(first)) log.error(last)
      for (const failure of failures) told.add(failure)
      roundsWithFailures = failures.length > 0 ? roundsWithFailures + 1 : 0
      failures = []
    },
    trouble: () => (roundsWithFailures < 2 ? undefined : last),
  }
}

function nameOf({ namespace, name }: StatusObject): string {
  return `${namespace}/${name}`
}

function ofBinding({ wanted, directions }: InterfaceState): readonly Said[] {
  const { binding } = wanted
  if (binding === undefined) return []
  const { generation, ...object } = binding
  return [{ object, generation, directions }]
}

/** A binding that was acted on and is now one that the API server would refuse: its attachment has the built-in policy. */
function refusedBindings(
  { trafficPolicyBindings }: ReportFacts['cluster'],
  states: readonly InterfaceState[],
  written: ReadonlyMap<string, Written>,
): readonly Said[] {
  const isSaid = new Set(states.map(({ wanted }) => (wanted.binding === undefined ? '' : nameOf(wanted.binding))))
  return [...written.keys()].flatMap((name) => {
    const binding = trafficPolicyBindings.get(name)
    if (binding === undefined || binding.spec !== undefined || isSaid.has(name)) return []
    const state: DirectionState = {
      state: 'Failed',
      message: `TrafficPolicyBinding ${name} cannot be read: ${describeProblems(binding.problems).replaceAll('\n', '; ')}`,
    }
    return [
      { object: objectOf(binding), generation: binding.generation, directions: { ingress: state, egress: state } },
    ]
  })
}

function objectOf({ meta: { namespace, name, uid } }: TrafficPolicyBinding): StatusObject {
  return { namespace, name, ...(uid !== undefined && { uid }) }
}
