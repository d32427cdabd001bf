/** A walk as text for a terminal: the verdict first, then each node's programs with their steps, and the state that is left. */
import { type ObjectRef, type Origin, printOrigin, printRef } from '#base/finding'
import { countOf, plainText } from '#base/text'
import type { Reason, VerdictKind } from '#model/trace'
import type { HeaderChange, Leg, MapLookup, StateRow, Walk, WalkPacket, WalkPlace, WalkStep } from '#model/walk'
import { printShare } from './print-trace'

export type WalkPrinting = {
  /** `business/a → business/svc/server:80`. */
  readonly title: string
  readonly notes: readonly string[]
  /** Every look-up's object, and look-ups that found nothing. */
  readonly isWide: boolean
  readonly hasColour: boolean
}

const colours = { good: 32, bad: 31, unsure: 33, head: 1, faint: 90 } as const

type Paint = (what: keyof typeof colours, text: string) => string

export function printWalk(walk: Walk, printing: WalkPrinting): string {
  const paint: Paint = (what, text) => (printing.hasColour ? `\u001b[${colours[what]}m${text}\u001b[0m` : text)
  const { request, reply } = walk
  const parts = [
    ...printing.notes.map((note) => `${plainText(note)}\n`),
    printLeg(request, `${printing.title}`, { paint, printing }),
    ...(reply === undefined ? [] : [printLeg(reply, 'the answer back', { paint, printing })]),
    printState(walk, { paint, printing }),
  ]
  return parts.filter((part) => part !== '').join('\n')
}

type Style = { readonly paint: Paint; readonly printing: WalkPrinting }

function printLeg(leg: Leg, title: string, style: Style): string {
  const [first] = leg.steps
  const what = first === undefined ? '' : `, ${packetText(first.packet)}`
  const head = `${style.paint('head', plainText(`${title}${what}`))}\n`
  return [head, printVerdict(leg, style), printTargets(leg), printSteps(leg.steps, style)]
    .filter((part) => part !== '')
    .join('')
}

const tones: Readonly<Record<VerdictKind, keyof typeof colours>> = {
  allowed: 'good',
  denied: 'bad',
  dropped: 'bad',
  rejected: 'bad',
  unknown: 'unsure',
}

function printVerdict({ verdict: { kind, because }, drop, steps }: Leg, { paint }: Style): string {
  const [first, ...rest] = because
  const last = steps.at(-1)
  const where = kind === 'allowed' || last?.at.node === undefined ? '' : `at ${last.at.node}, step ${steps.length}: `
  const number = drop === undefined ? '' : `${drop.number} ${drop.name}: `
  const lines = [
    `${paint(tones[kind], kind.toUpperCase())}  ${plainText(`${where}${number}${reasonText(first)}`)}`,
    ...rest.map((reason) => `  ${plainText(reasonText(reason))}`),
  ]
  return `${lines.join('\n')}\n`
}

function reasonText({ sentence, object, origin, rule }: Reason): string {
  const place = placeText({ object, origin })
  return [sentence, place === '' ? '' : ` [${place}]`, rule === undefined ? '' : `: ${rule}`].join('')
}

type Place = {
  readonly object?: ObjectRef | undefined
  readonly path?: string | undefined
  readonly origin?: Origin | undefined
}

/** `Service business/server spec.clusterIPs[0], world.yaml:97`. */
function placeText({ object, path, origin }: Place): string {
  const what = [object === undefined ? '' : printRef(object), path ?? ''].filter((part) => part !== '').join(' ')
  return [what, origin === undefined ? '' : printOrigin(origin)].filter((part) => part !== '').join(', ')
}

/** Where the datapath chooses: all of them, and which one the steps follow. */
function printTargets({ targets, steps }: Leg): string {
  if (targets.length < 2) return ''
  const passed = new Set(steps.map(({ packet }) => packet.destination))
  const followed = targets.find(({ address }) => passed.has(address))
  const width = Math.max(...targets.map(({ address }) => address.length))
  return targets
    .map((target) => {
      const mark = target === followed ? '  followed here' : ''
      return `  ${target.address.padEnd(width)}  ${printShare(target.share).padStart(6)}${mark}\n`
    })
    .join('')
}

/** Blocks of one node, in them blocks of one program, in them the steps, numbered through. */
function printSteps(steps: readonly WalkStep[], style: Style): string {
  const lines: string[] = []
  let last: WalkPlace | undefined
  const width = Math.min(40, Math.max(0, ...steps.map(({ did }) => did.length)))
  for (const [index, step] of steps.entries()) {
    if (last === undefined || last.node !== step.at.node) {
      lines.push('', style.paint('head', plainText(step.at.node ?? 'outside the cluster')))
    }
    if (last === undefined || placeLine(last) !== placeLine(step.at) || last.node !== step.at.node) {
      lines.push(`  ${style.paint('faint', plainText(placeLine(step.at)))}`)
    }
    lines.push(...stepLines(step, { number: index + 1, width, last: steps[index - 1] }, style))
    last = step.at
  }
  return `${lines.join('\n')}\n`
}

function placeLine({ device, hook, program }: WalkPlace): string {
  const where = device === undefined ? hook : `${device}, ${hook}`
  return program === undefined ? where : `${where}: ${program}`
}

type StepPlace = { readonly number: number; readonly width: number; readonly last: WalkStep | undefined }

function stepLines(step: WalkStep, { number, width, last }: StepPlace, style: Style): readonly string[] {
  const isNarrower = step.share !== undefined && step.share !== last?.share
  const share = isNarrower ? ` (${printShare(step.share)} of connections from here on)` : ''
  const margin = ' '.repeat(9)
  const [first = '', ...more] = wrap(`${step.because}${share}`, 118 - width - 11)
  const did = step.did.length > width ? `${step.did}\n${' '.repeat(9 + width)}` : step.did.padEnd(width)
  const rule = style.printing.isWide
    ? (step.hops ?? []).map(({ rule: own }) => own ?? '').filter((one) => one !== '')
    : []
  const place = placeText(step)
  return [
    `    ${plain(`${String(number).padStart(3)}  ${did}`)}  ${plainText(first)}`.trimEnd(),
    ...more.map((line) => `${' '.repeat(11 + width)}${plainText(line)}`),
    ...(place === '' ? [] : [`${margin}${style.paint('faint', plainText(`from ${place}`))}`]),
    ...lookupLines(step.lookups ?? [], style).map((line) => `${margin}${line}`),
    ...rule.map((line) => `${margin}${plainText(line)}`),
    ...changeLines(step.changes ?? []).map((line) => `${margin}${plainText(line)}`),
    ...(isSamePacket(last?.packet, step.packet) ? [] : [`${margin}now ${plainText(packetText(step.packet))}`]),
  ]
}

/** A break inside is meant. */
function plain(text: string): string {
  return text.split('\n').map(plainText).join('\n')
}

function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + word.length + 1 > Math.max(width, 40)) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}

function lookupLines(lookups: readonly MapLookup[], { printing, paint }: Style): readonly string[] {
  const found = lookups.filter(({ value }) => value !== undefined)
  const shown = printing.isWide || found.length === 0 ? lookups : found
  const width = Math.max(0, ...shown.map(({ map }) => map.length))
  return shown.flatMap((lookup) => {
    const { map, key, value } = lookup
    const place = placeText(lookup)
    const line = `${map.padEnd(width)}  ${key} → ${value === undefined ? 'no such row' : value.trim()}`
    const isTold = place !== '' && (printing.isWide || value !== undefined)
    return [
      plainText(line),
      ...(isTold ? [`${' '.repeat(width + 2)}${paint('faint', plainText(`from ${place}`))}`] : []),
    ]
  })
}

function changeLines(changes: readonly HeaderChange[]): readonly string[] {
  const fields = Math.max(0, ...changes.map(({ field }) => field.length))
  const values = changes.map(({ before, after }) => `${before} → ${after}`)
  const width = Math.max(0, ...values.map((one) => one.length))
  return changes.map(({ field, by }, index) =>
    `rewrote ${field.padEnd(fields)}  ${(values[index] ?? '').padEnd(width)}  ${by ?? ''}`.trimEnd(),
  )
}

/** `TCP 10.244.1.10:43210 → 10.96.0.50:80, identity 1001, in VXLAN 192.168.1.10 → 192.168.1.11`. */
export function packetText({ protocol, source, destination, about, mark, identity, wrappedIn }: WalkPacket): string {
  return [
    `${protocol} ${source} → ${destination}`,
    about === undefined ? '' : `about ${about}`,
    identity === undefined ? '' : `identity ${identity}`,
    mark === undefined ? '' : `mark ${mark}`,
    wrappedIn === undefined ? '' : `in ${wrappedIn}`,
  ]
    .filter((part) => part !== '')
    .join(', ')
}

function isSamePacket(a: WalkPacket | undefined, b: WalkPacket): boolean {
  return a === undefined || packetText(a) === packetText(b)
}

/** Rows that stand beside each connection for errors of ICMP are counted, unless all is asked for. */
function printState({ before, after }: Walk, { paint, printing }: Style): string {
  if (before.length + after.length === 0) return ''
  const isThere = (row: StateRow, rows: readonly StateRow[]): boolean =>
    rows.some((one) => one.node === row.node && one.table === row.table && one.row === row.row)
  const gone = before.filter((row) => !isThere(row, after))
  const marked = [
    ...gone.map((row) => ({ mark: '-', row })),
    ...after.map((row) => ({ mark: isThere(row, before) ? ' ' : '+', row })),
  ]
  const shown = printing.isWide ? marked : marked.filter(({ row }) => !row.row.includes(' related '))
  const hidden = marked.length - shown.length
  const nodes = [...new Set(shown.map(({ row }) => row.node))]
  const lines = nodes.flatMap((node) => {
    const own = shown.filter(({ row }) => row.node === node)
    const width = Math.max(...own.map(({ row }) => row.table.length))
    return [
      `  ${plainText(node)}`,
      ...own.map(({ mark, row }) => `  ${mark} ${plainText(`${row.table.padEnd(width)}  ${row.row}`)}`.trimEnd()),
    ]
  })
  const rest = hidden === 0 ? '' : `  and ${countOf(hidden, 'row')} for errors of ICMP about them\n`
  return `${paint('head', 'connection tracking and NAT afterwards (+ new, - gone)')}\n${lines.join('\n')}\n${rest}`
}

/** The walk as JSON prints it: what is absent is left out. */
export function walkJson({ datapath, request, reply, before, after }: Walk): unknown {
  return { datapath, request, ...(reply !== undefined && { reply }), before, after }
}
