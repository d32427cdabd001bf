/** A walk as a Mermaid sequence diagram: a lifeline for each program of each node, arrows where the packet goes on. */
import type { Leg, Walk, WalkPlace } from '#model/walk'
import { packetText } from './print-walk'

export function drawWalk({ request, reply }: Walk): string {
  const legs = reply === undefined ? [request] : [request, reply]
  const lines: string[] = ['sequenceDiagram']
  const names = new Map<string, string>()
  for (const { steps } of legs) {
    for (const { at } of steps) {
      const text = lifeline(at)
      if (!names.has(text)) names.set(text, `P${names.size + 1}`)
    }
  }
  for (const [text, name] of names) lines.push(`  participant ${name} as ${safe(text)}`)
  for (const [index, leg] of legs.entries()) lines.push(...drawLeg(leg, names, index === 0 ? 'request' : 'answer'))
  return `${lines.join('\n')}\n`
}

function lifeline({ node, device, hook, program }: WalkPlace): string {
  const where = node ?? 'outside'
  return `${where}: ${program ?? device ?? hook}`
}

function drawLeg({ steps, verdict, drop }: Leg, names: ReadonlyMap<string, string>, title: string): readonly string[] {
  const lines: string[] = []
  let last: string | undefined
  let sent = steps[0]?.packet
  for (const { at, did, because, packet } of steps) {
    const name = names.get(lifeline(at)) ?? ''
    if (last === undefined) lines.push(`  Note over ${name}: ${title} ${safe(packetText(packet))}`)
    else if (last !== name) lines.push(`  ${last}->>${name}: ${safe(packetText(sent ?? packet))}`)
    lines.push(`  Note over ${name}: ${safe(did)}<br/>${safe(because)}`)
    last = name
    sent = packet
  }
  if (last === undefined) return lines
  const number = drop === undefined ? '' : ` ${drop.number} ${drop.name}`
  const fate = `${verdict.kind.toUpperCase()}${number}: ${verdict.because[0].sentence}`
  return [...lines, `  ${last}${verdict.kind === 'allowed' ? '->>' : '--x'}${last}: ${safe(fate)}`]
}

/** What Mermaid would read as its own: ends of statements, entities, comments and tags. */
function safe(text: string): string {
  return text
    .replaceAll('#', '#35;')
    .replaceAll(/;(?<!#35;)/g, ',')
    .replaceAll('%%', '%')
    .replaceAll('<', '‹')
    .replaceAll('>', '›')
}
