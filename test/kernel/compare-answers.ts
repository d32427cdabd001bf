/** Whether the verdict, the targets and the source translation that a trace tells agree with what the kernel did to a packet. */
import { printEndpoint } from '#base/ip'
import type { Trace } from '#model/trace'
import { traceRuleset } from '#trace/trace-ruleset'
import type { ComparedPacket } from './compare-paths'
import type { PacketOutcome } from './trace-packets'
import { isTaken } from './walk-lines'

type Answer = Pick<Trace, 'verdict' | 'targets' | 'masquerade'>

/** The main answer and its branches: what a trace is not told may decide between them. */
export function answerDifference(seen: PacketOutcome, { input, path }: ComparedPacket): string | undefined {
  const trace = traceRuleset(input).value
  const answers: readonly Answer[] = [trace, ...(trace.branches ?? [])]
  const isTranslated = path?.path.fields.isDnat ?? false
  if (isTaken(seen) || answers.some((answer) => isAnswer(seen, answer, isTranslated))) return undefined
  const shown = answers.map(({ verdict, targets, masquerade }) => JSON.stringify({ verdict, targets, masquerade }))
  return [JSON.stringify(seen.packet), `kernel: ${JSON.stringify(fateOf(seen))}`, ...shown].join('\n')
}

function isAnswer(seen: PacketOutcome, { verdict, targets, masquerade }: Answer, isTranslated: boolean): boolean {
  const fate = fateOf(seen)
  const codes = verdict.because.map(({ code }) => code)
  if (fate.kind === 'vanished') return verdict.kind === 'dropped'
  if (fate.address === undefined) return codes.some((code) => code.startsWith(`trace.${fate.kind}-by-`))
  const target = targets.find(({ address, share }) => share > 0 && isTarget(address, fate))
  const isWhole = targets.reduce((sum, { share }) => sum + share, 0) > 0.999
  // What is stopped in part, or undecided, tells its targets all the same.
  const isOpen = codes.includes('trace.undecided') || !isWhole
  if (verdict.kind !== 'allowed' && !(isOpen && (target !== undefined || !isTranslated))) return false
  if (isTranslated ? target === undefined : isWhole) return false
  return fate.hasNewSource ? masquerade.length > 0 : true
}

/** Of a port that is one of several, or an address of the node that is one of several, a trace tells what it knows. */
function isTarget(told: string, { address, port }: { readonly address: string; readonly port: number }): boolean {
  const range = /^(.*):(\d+)-(\d+)$/.exec(told)
  if (range === null) return told === address || told === (port === 0 ? 'this node' : `this node:${port}`)
  const isInside = port >= Number(range[2]) && port <= Number(range[3])
  return isInside && (range[1] === 'this node' || `${range[1]}:${port}` === address)
}

function fateOf({ packet, walks }: PacketOutcome) {
  const { fate } = walks.at(-1) ?? walks[0]
  if (fate.kind !== 'left' && fate.kind !== 'delivered') return { kind: fate.kind } as const
  const { destination, destinationPort, source } = fate.packet
  const address = destinationPort === undefined ? destination : printEndpoint(destination, destinationPort)
  return { kind: fate.kind, address, port: destinationPort ?? 0, hasNewSource: source !== packet.source } as const
}
