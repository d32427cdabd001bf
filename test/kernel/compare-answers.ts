/** Whether the verdict, the targets and the source translation that a trace tells agree with what the kernel did to a packet. */
import { printEndpoint } from '#base/ip'
import type { Trace } from '#model/trace'
import { traceRuleset } from '#trace/trace-ruleset'
import type { ComparedPacket } from './compare-paths'
import type { PacketOutcome } from './trace-packets'

type Answer = Pick<Trace, 'verdict' | 'targets' | 'masquerade'>

/** The main answer and its branches: memory may decide between them. */
export function answerDifference(seen: PacketOutcome, { input, path }: ComparedPacket): string | undefined {
  const trace = traceRuleset(input).value
  const answers: readonly Answer[] = [trace, ...(trace.branches ?? [])]
  const isTranslated = path?.path.fields.isDnat ?? false
  if (answers.some((answer) => isAnswer(seen, answer, isTranslated))) return undefined
  const shown = answers.map(({ verdict, targets, masquerade }) => JSON.stringify({ verdict, targets, masquerade }))
  return [JSON.stringify(seen.packet), `kernel: ${JSON.stringify(fateOf(seen))}`, ...shown].join('\n')
}

function isAnswer(seen: PacketOutcome, { verdict, targets, masquerade }: Answer, isTranslated: boolean): boolean {
  const fate = fateOf(seen)
  if (fate.kind === 'dropped' || fate.kind === 'rejected') return verdict.kind === fate.kind
  if (verdict.kind !== 'allowed') return false
  const target = targets.find(({ address, share }) => address === fate.address && share > 0)
  if (isTranslated ? target === undefined : targets.length > 0) return false
  return fate.hasNewSource ? masquerade.length > 0 : true
}

function fateOf({ packet, walks }: PacketOutcome) {
  const { fate } = walks.at(-1) ?? walks[0]
  if (fate.kind !== 'left' && fate.kind !== 'delivered') return { kind: fate.kind } as const
  const { destination, destinationPort, source } = fate.packet
  const address = destinationPort === undefined ? destination : printEndpoint(destination, destinationPort)
  return { kind: fate.kind, address, hasNewSource: source !== packet.source } as const
}
