/** One way a packet may take through the rules: its fields now, the answers assumed so far, and the hops behind it. */
import type { Ip } from '#base/ip'
import { containsPrefix, overlaps, type Prefix } from '#base/prefix'
import type { ConnectionState, PacketProtocol } from '#model/packet'
import type { HopRule } from './hop-rule'
import type { Answered, Question } from './question'

/** How the packet came: from the wire (PREROUTING) or from a process of the node (OUTPUT). */
export type Way = 'wire' | 'process'

export type Fields = {
  readonly way: Way
  readonly family: Ip['family']
  readonly protocol: PacketProtocol
  readonly destination: Ip
  readonly destinationPort: number | undefined
  readonly source: Ip | undefined
  readonly sourcePort: number | undefined
  readonly inInterface: string | undefined
  readonly outInterface: string | undefined
  /** OUTPUT gave a process's packet another destination, for which the kernel asked the routes again. */
  readonly isRerouted: boolean
  /** Undefined after a target that sets it to something Portolan cannot compute. */
  readonly mark: number | undefined
  readonly connmark: number | undefined
  readonly state: ConnectionState
  readonly icmp: { readonly type: number; readonly code: number } | undefined
  readonly originalSource: Ip | undefined
  readonly originalDestination: Ip
  readonly originalPort: number | undefined
  readonly isDnat: boolean
  readonly isSnat: boolean
  /** The packet is delivered on the node because a target made it so (REDIRECT, TPROXY). */
  readonly isRedirected: boolean
  /** The addresses of which the destination is one, when a rule redirected the packet and it is not known which. */
  readonly redirectedTo: readonly Ip[] | undefined
  /** Where a transparent proxy takes the packet whose destination stays as it is. */
  readonly proxy: string | undefined
}

/** Which rule set the mark's bits, and on what conditions: the reason of a later masquerade. */
export type MarkCause = { readonly rule: HopRule | undefined; readonly conditions: readonly Answered[] }

export type HopEvent = {
  readonly hook: string
  readonly table?: string
  readonly chain?: string
  readonly rule?: HopRule
  readonly kind: 'rule' | 'return' | 'policy' | 'note'
  readonly did: string
  readonly because?: string
  readonly when?: readonly Answered[]
  readonly before?: string
  readonly after?: string
}

/** Hops as a list from the newest to the oldest, shared between paths that split later. */
export type Log = { readonly hop: HopEvent; readonly earlier: Log | undefined }

export type Answers = Answered & { readonly earlier: Answers | undefined }

/** How a table's walk, or the whole one, ended for a path. */
export type End =
  | { readonly kind: 'accept' | 'drop' | 'reject'; readonly rule?: HopRule; readonly place: HopEvent }
  | { readonly kind: 'unknown'; readonly why: string; readonly place: HopEvent }

export type Translation = {
  readonly conditions: readonly Answered[]
  readonly rule: HopRule
  readonly to: string | undefined
}

export type Path = {
  readonly fields: Fields
  readonly share: number
  readonly answers: Answers | undefined
  readonly sourceInside: Prefix | undefined
  readonly sourceOutside: Outside | undefined
  readonly log: Log | undefined
  readonly markCause: MarkCause | undefined
  readonly sourceNat: Translation | undefined
  readonly end: End | undefined
}

type Outside = { readonly prefix: Prefix; readonly earlier: Outside | undefined }

export function withHop(path: Path, hop: HopEvent): Path {
  return { ...path, log: { hop, earlier: path.log } }
}

/** What earlier answers on the path say to a question; undefined when they leave it open. */
export function answerOf(path: Path, question: Question): boolean | undefined {
  const { subject } = question
  if (subject.kind === 'source-in') return sourceAnswer(path, subject.prefix)
  for (let entry = path.answers; entry !== undefined; entry = entry.earlier) {
    if (entry.question.key === question.key) return entry.answer
    const implied = impliedAnswer(entry, question)
    if (implied !== undefined) return implied
  }
  return undefined
}

export function assume(path: Path, question: Question, answer: boolean): Path {
  const answers = { question, answer, earlier: path.answers }
  const { subject } = question
  if (subject.kind !== 'source-in') return { ...path, answers }
  if (answer) return { ...path, answers, sourceInside: subject.prefix }
  return { ...path, answers, sourceOutside: { prefix: subject.prefix, earlier: path.sourceOutside } }
}

function sourceAnswer(path: Path, prefix: Prefix): boolean | undefined {
  const inside = path.sourceInside
  if (inside !== undefined) {
    if (containsPrefix(prefix, inside)) return true
    if (!overlaps(prefix, inside)) return false
  }
  for (let entry = path.sourceOutside; entry !== undefined; entry = entry.earlier) {
    if (containsPrefix(entry.prefix, prefix)) return false
  }
  return undefined
}

/** An interface that is `eth0` is no other one; one that does not match `cali+` is not `cali12` either. */
function impliedAnswer(entry: Answers, question: Question): boolean | undefined {
  const earlier = entry.question.subject
  const { subject } = question
  if (earlier.kind === 'source-port' && subject.kind === 'source-port' && entry.answer) {
    if (earlier.range.from >= subject.range.from && earlier.range.to <= subject.range.to) return true
    return earlier.range.to < subject.range.from || earlier.range.from > subject.range.to ? false : undefined
  }
  if (earlier.kind !== 'in-interface' && earlier.kind !== 'out-interface') return undefined
  if (subject.kind !== earlier.kind) return undefined
  if (subject.kind === 'out-interface' && earlier.kind === subject.kind && subject.isRerouted !== earlier.isRerouted) {
    return undefined
  }
  if (entry.answer) {
    if (coversPattern(subject.pattern, earlier.pattern)) return true
    return coversPattern(earlier.pattern, subject.pattern) ? undefined : false
  }
  return coversPattern(earlier.pattern, subject.pattern) ? false : undefined
}

/** Every name that `inner` matches is matched by `outer`; a pattern may end in `+`. */
export function coversPattern(outer: string, inner: string): boolean {
  if (outer.endsWith('+')) return inner.replace(/\+$/, '').startsWith(outer.slice(0, -1))
  return outer === inner
}

/** A packet that came back on `lo` keeps the connection it has (nft_notrack_eval, xt_CT). */
export function untrack(path: Path): Path {
  const hasConnection = path.fields.way === 'process' && path.fields.inInterface === 'lo'
  return hasConnection ? path : { ...path, fields: { ...path.fields, state: 'UNTRACKED' } }
}

/** A path that nothing is known of but what is added to it. */
export const emptyPath: Path = {
  fields: {
    way: 'wire',
    family: 'ipv4',
    protocol: 'all',
    destination: { family: 'ipv4', words: [0] },
    destinationPort: undefined,
    source: undefined,
    sourcePort: undefined,
    inInterface: undefined,
    outInterface: undefined,
    isRerouted: false,
    mark: 0,
    connmark: 0,
    state: 'NEW',
    icmp: undefined,
    originalSource: undefined,
    originalDestination: { family: 'ipv4', words: [0] },
    originalPort: undefined,
    isDnat: false,
    isSnat: false,
    isRedirected: false,
    redirectedTo: undefined,
    proxy: undefined,
  },
  share: 1,
  answers: undefined,
  sourceInside: undefined,
  sourceOutside: undefined,
  log: undefined,
  markCause: undefined,
  sourceNat: undefined,
  end: undefined,
}
