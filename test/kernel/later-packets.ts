/** Packets of connections that there are already: what the far end answers, and what the first sender says next. */
import { bridgeLink, outsideLink, podLink } from '../random/node-layout'
import { echoRequestType, type SentPacket } from './sent-packet'
import type { PacketOutcome } from './trace-packets'

/** For connections over the wire that nothing translated: of the others a trace is not told both ends. */
export function answersTo(outcomes: readonly PacketOutcome[]): readonly SentPacket[] {
  return outcomes.filter(isPlain).flatMap(answerTo)
}

/** The first packets of those connections whose answers came through, once more. */
export function secondPackets(
  firsts: readonly PacketOutcome[],
  answers: readonly PacketOutcome[],
): readonly SentPacket[] {
  const answered = new Set(answers.filter(isPlain).map(({ packet }) => idOf(packet)))
  return firsts.filter(isPlain).flatMap(({ packet }) => (answered.has(idOf(packet)) ? [packet] : []))
}

/** Packets of these tests differ in their ports or ICMP ids. */
function idOf({ protocol, sourcePort = 0, destinationPort = 0, icmp }: SentPacket): string {
  return `${protocol} ${Math.min(sourcePort, destinationPort)} ${Math.max(sourcePort, destinationPort)} ${icmp?.id}`
}

function isPlain({ packet, walks }: PacketOutcome): boolean {
  const [{ fate, steps }] = walks
  if (packet.flags !== undefined || !mayBeAnswered(packet)) return false
  if (fate.kind !== 'left' || !isLink(fate.outInterface) || walks.length > 1 || !isLink(packet.from)) return false
  const isSameEnds = fate.packet.source === packet.source && fate.packet.destination === packet.destination
  const isSamePorts =
    fate.packet.sourcePort === packet.sourcePort &&
    fate.packet.destinationPort === packet.destinationPort &&
    fate.packet.icmp?.id === packet.icmp?.id
  const isTracked = !steps.some((step) => step.kind === 'rule' && /-j (NOTRACK|CT .*--notrack)/.test(step.rule))
  return isSameEnds && isSamePorts && isTracked
}

function mayBeAnswered(packet: SentPacket): boolean {
  return packet.protocol === 'udp' || packet.icmp?.type === echoRequestType(packet) || isEchoAnswer(packet)
}

function isEchoAnswer({ icmp }: SentPacket): boolean {
  return icmp?.type === 0 || icmp?.type === 129
}

function isLink(name: string): boolean {
  return [outsideLink, bridgeLink, podLink].includes(name)
}

function answerTo({ packet, walks }: PacketOutcome): SentPacket[] {
  const [{ fate }] = walks
  if (fate.kind !== 'left' || isEchoAnswer(packet)) return []
  const { source, sourcePort, destination, destinationPort, icmp } = packet
  return [
    {
      from: fate.outInterface,
      protocol: packet.protocol,
      source: destination,
      destination: source,
      ...(destinationPort !== undefined && { sourcePort: destinationPort }),
      ...(sourcePort !== undefined && { destinationPort: sourcePort }),
      ...(icmp !== undefined && { icmp: { ...icmp, type: icmp.type === 8 ? 0 : 129 } }),
    },
  ]
}
