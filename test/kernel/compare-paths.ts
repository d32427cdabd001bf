/** Compares what the kernel did to packets with the paths that Portolan finds for them. */
import type { Ruleset } from '#compile/iptables/rule'
import type { ConnectionState } from '#model/packet'
import { type RulesetTraceInput, walkEveryPath } from '#trace/trace-ruleset'
import type { Outcome } from '#trace/walk-hooks'
import { traceInputOf } from '../random/random-packets'
import { agreesWithPacket } from './known-answers'
import type { SentPacket } from './sent-packet'
import type { PacketOutcome } from './trace-packets'
import { fateDifference, fateOfKernel, fateOfPath, isTaken, linesOfKernel, linesOfPath } from './walk-lines'

export type TracedNode = Pick<RulesetTraceInput, 'nodeIps' | 'sets'> & { readonly ruleset: Ruleset }

export type Difference = {
  readonly packet: SentPacket
  /** The kernel's walk and the path of Portolan's that comes closest, side by side. */
  readonly shown: string
}

export type ComparedPacket = {
  readonly input: RulesetTraceInput
  readonly paths: readonly Outcome[]
  /** The path that the kernel took, when Portolan knows it. */
  readonly path: Outcome | undefined
  readonly difference: Difference | undefined
}

export type CompareOptions = {
  /** Leaves out the paths that rest on answers known to be wrong. */
  readonly isPossible?: (path: Outcome) => boolean
  /** What the packet is to its connection; left out, it begins one if it can. */
  readonly state?: ConnectionState
  /** The link that the node's routes to an address lead to, where the node is not the usual one. */
  readonly linkTo?: (address: string) => string
}

export function comparePaths(
  seen: PacketOutcome,
  { ruleset, ...known }: TracedNode,
  { isPossible = () => true, state, linkTo }: CompareOptions = {},
): ComparedPacket {
  const input = traceInputOf(seen.packet, { ...known, rulesets: [ruleset] }, state)
  const paths = walkEveryPath(input).filter(
    (path) => path.path.share > 0 && agreesWithPacket(path, seen, linkTo) && isPossible(path),
  )
  const kernel = linesOfKernel(seen)
  const candidates = paths.map((path) => ({ path, lines: linesOfPath(path, ruleset) }))
  const isCut = isTaken(seen)
  const sameWay = candidates.filter(({ lines }) => isSameList(isCut ? lines.slice(0, kernel.length) : lines, kernel))
  const match = sameWay.find(({ path }) => isCut || fateDifference(seen, path) === undefined)
  if (match !== undefined) return { input, paths, path: match.path, difference: undefined }
  const [first = closest(candidates, kernel)] = sameWay
  const shown = first === undefined ? [...kernel, 'Portolan finds no path'] : sideBySide(kernel, first.lines)
  const fates =
    first === undefined
      ? []
      : [
          `kernel   ends: ${fateOfKernel(seen)}`,
          `Portolan ends: ${fateOfPath(first.path)}`,
          fateDifference(seen, first.path) ?? 'the fates agree',
        ]
  const text = [`${JSON.stringify(seen.packet)}, ${paths.length} paths`, ...shown, ...fates].join('\n')
  return { input, paths, path: undefined, difference: { packet: seen.packet, shown: text } }
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((line, index) => line === b[index])
}

type Candidate = { readonly path: Outcome; readonly lines: readonly string[] }

function closest(candidates: readonly Candidate[], kernel: readonly string[]): Candidate | undefined {
  const agreement = ({ lines }: Candidate): number => {
    const first = lines.findIndex((line, index) => line !== kernel[index])
    return first === -1 ? lines.length : first
  }
  let best = candidates[0]
  for (const one of candidates) if (best === undefined || agreement(one) > agreement(best)) best = one
  return best
}

/** One line where both agree, both lines where they do not. */
function sideBySide(kernel: readonly string[], ours: readonly string[]): readonly string[] {
  const rows = Array.from({ length: Math.max(kernel.length, ours.length) }, (_, index) => [kernel[index], ours[index]])
  return rows.flatMap(([left, right]) =>
    left === right ? [`  both      ${left}`] : [`≠ kernel    ${left ?? '–'}`, `≠ Portolan  ${right ?? '–'}`],
  )
}
