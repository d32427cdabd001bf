/** The kernel's walk and Portolan's path as the same lines, so that they can be compared and read side by side. */
import { printEndpoint, printIp } from '#base/ip'
import type { Action, Ruleset } from '#compile/iptables/rule'
import { isIptablesRule } from '#trace/hop-rule'
import type { HopEvent, Log } from '#trace/path'
import type { Outcome } from '#trace/walk-hooks'
import type { PacketOutcome } from './trace-packets'
import type { Step, Walk } from './walk'

/** Rules that match and base chains' policies; the ends of user chains, which the kernel reports only now and then, are left out. */
export function linesOfKernel({ walks }: Pick<PacketOutcome, 'walks'>): readonly string[] {
  return walks.flatMap((walk) => walk.steps.flatMap(lineOfStep))
}

function lineOfStep(step: Step): readonly string[] {
  const { table, chain, verdict } = step
  const shown = 'chain' in verdict ? `${verdict.kind} ${verdict.chain}` : verdict.kind
  if (step.kind === 'rule') {
    return [`${table} ${chain}[${step.index}] ${isTakingRule(step.rule) ? 'taken' : shown} ← ${step.rule}`]
  }
  return step.kind === 'policy' ? [`${table} ${chain} policy ${shown}`] : []
}

export function linesOfPath({ path }: Outcome, ruleset: Ruleset): readonly string[] {
  return hopsOf(path.log).flatMap((hop) => lineOfHop(hop, ruleset))
}

function hopsOf(log: Log | undefined): readonly HopEvent[] {
  const hops: HopEvent[] = []
  for (let entry = log; entry !== undefined; entry = entry.earlier) hops.unshift(entry.hop)
  return hops
}

function lineOfHop(hop: HopEvent, ruleset: Ruleset): readonly string[] {
  const { table = '', chain = '', rule } = hop
  if (hop.kind === 'policy') {
    return [`${table} ${chain} policy ${hop.did.startsWith('accepted') ? 'accept' : 'drop'}`]
  }
  if (rule === undefined || !isIptablesRule(rule)) return []
  const chains = ruleset.tables.get(table)?.chains
  const index = chains?.get(chain)?.rules.indexOf(rule) ?? -1
  return [`${table} ${chain}[${index}] ${verdictOf(rule.action, chains ?? new Map())} ← ${rule.text}`]
}

/** They take a packet to a program: without one, as in the tests, the kernel drops it there. */
const takers: ReadonlySet<string> = new Set(['NFQUEUE', 'QUEUE', 'TPROXY'])

/** The walk ended at a rule of which Portolan tells only what follows when there is such a program. */
export function isTaken({ walks }: Pick<PacketOutcome, 'walks'>): boolean {
  const last = walks.at(-1)?.steps.at(-1)
  return last?.kind === 'rule' && isTakingRule(last.rule) && last.verdict.kind !== 'accept'
}

function isTakingRule(rule: string): boolean {
  return takers.has(/ -j (\S+)/.exec(rule)?.[1] ?? '')
}

/** What the kernel reports of a rule's target. */
function verdictOf(action: Action | undefined, chains: ReadonlyMap<string, unknown>): string {
  if (action === undefined) return 'continue'
  if (chains.has(action.target)) return `${action.kind} ${action.target}`
  if (action.target === 'RETURN') return 'return'
  if (takers.has(action.target)) return 'taken'
  if (action.target === 'DROP' || action.target === 'REJECT') return 'drop'
  const accepting = ['ACCEPT', 'DNAT', 'SNAT', 'MASQUERADE', 'REDIRECT', 'NETMAP']
  return accepting.includes(action.target) ? 'accept' : 'continue'
}

export function fateOfKernel({ walks }: Pick<PacketOutcome, 'walks'>): string {
  const fate = (walks.at(-1) ?? walks[0]).fate
  if (!('packet' in fate)) return fate.kind
  const { packet } = fate
  const end = `${endOf(packet.source, packet.sourcePort)} → ${endOf(packet.destination, packet.destinationPort)}`
  return `${fate.kind} ${end} mark 0x${fate.mark.toString(16)}`
}

export function fateOfPath({ kind, delivered, path }: Outcome): string {
  if (kind !== 'delivered') return kind
  const { source, sourcePort, destination, destinationPort, mark, isSnat } = path.fields
  const from = source === undefined ? 'another source' : endOf(printIp(source), isSnat ? undefined : sourcePort)
  const to = endOf(printIp(destination), destinationPort)
  return `${delivered === 'local' ? 'delivered' : 'left'} ${from} → ${to} mark 0x${(mark ?? 0).toString(16)}`
}

function endOf(ip: string, port: number | undefined): string {
  return port === undefined ? ip : printEndpoint(ip, port)
}

/** What differs between the fates, as a sentence; undefined when Portolan's is the kernel's. */
export function fateDifference(
  seen: Pick<PacketOutcome, 'packet' | 'walks'>,
  { kind, delivered, path }: Outcome,
): string | undefined {
  const last: Walk = seen.walks.at(-1) ?? seen.walks[0]
  const { fate } = last
  if (fate.kind === 'vanished') {
    const isRefused = kind === 'dropped' && path.end?.place.kind === 'note'
    return isRefused ? undefined : `no rule ended it, and it left by no interface; Portolan says ${kind}`
  }
  if (!('packet' in fate)) return differs('fate', fate.kind, kind)
  if (kind !== 'delivered') return differs('fate', fate.kind, kind)
  const { fields } = path
  const { packet } = fate
  return (
    differs('place', fate.kind, delivered === 'local' ? 'delivered' : 'left') ??
    destinationDifference(packet, fields) ??
    (fields.mark === undefined ? undefined : differs('mark', String(fate.mark), String(fields.mark))) ??
    sourceDifference(seen.packet, packet, fields)
  )
}

function differs(what: string, kernel: string, ours: string): string | undefined {
  return kernel === ours ? undefined : `${what}: ${kernel} in the kernel, ${ours} in Portolan`
}

type Ends = {
  readonly source: string
  readonly sourcePort?: number
  readonly destination: string
  readonly destinationPort?: number
}

function destinationDifference(packet: Ends, fields: Outcome['path']['fields']): string | undefined {
  if (fields.redirectedTo !== undefined) return undefined
  const port = packet.destinationPort ?? 0
  if (fields.destinationPort !== undefined && port !== 0 && port !== fields.destinationPort) {
    return differs('destination port', String(port), String(fields.destinationPort))
  }
  return differs('destination', packet.destination, printIp(fields.destination))
}

/** A translated source may come out as it was: the node's own address stays the node's own. */
function sourceDifference(sent: Ends, packet: Ends, fields: Outcome['path']['fields']): string | undefined {
  if (!fields.isSnat) return differs('source', endOfPacket(packet), endOfPacket({ ...packet, ...sent }))
  return fields.source === undefined ? undefined : differs('source', packet.source, printIp(fields.source))
}

function endOfPacket({ source, sourcePort }: Ends): string {
  return endOf(source, sourcePort)
}
