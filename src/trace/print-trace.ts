/** A trace as text for a terminal: verdict, targets, source translation, other answers, hops. */
import { countOf, printTable } from '#base/text'
import type { Branch, Hop, Masquerade, Reason, Target, Trace } from '#model/trace'

export type TracePrinting = {
  /** `tcp to 10.96.0.20:80`, the first line. */
  readonly title: string
  /** Print each rule's text under its hop, every branch's hops, and where chains end. */
  readonly isWide: boolean
}

export function printTrace(trace: Trace, printing: TracePrinting): string {
  const parts = [
    `${printing.title}\n`,
    printVerdict(trace),
    printTargets(trace.targets),
    printMasquerade(trace.masquerade),
    trace.simulated === undefined ? '' : printSimulated(trace.simulated),
    (trace.branches ?? []).length === 0 ? '' : printBranches(trace.branches ?? []),
    printHops(trace.hops, printing.isWide),
  ]
  return parts.filter((part) => part !== '').join('\n')
}

function printVerdict(trace: Trace): string {
  const [first, ...rest] = trace.verdict.because
  const lines = [
    `${trace.verdict.kind.toUpperCase()}  ${printReason(first)}`,
    ...rest.map((reason) => `  ${printReason(reason)}`),
  ]
  return `${lines.join('\n')}\n`
}

function printReason(reason: Reason): string {
  return reason.line === undefined ? reason.sentence : `${reason.sentence} (line ${reason.line})`
}

export function printShare(share: number): string {
  const percent = share * 100
  return `${percent >= 99.995 ? '100' : percent.toFixed(percent < 10 ? 2 : 1)} %`
}

function printTargets(targets: readonly Target[]): string {
  if (targets.length === 0) return ''
  return indent(
    printTable(
      ['TARGET', 'SHARE'],
      targets.map((target) => [target.address, printShare(target.share)]),
    ),
  )
}

function printMasquerade(entries: readonly Masquerade[]): string {
  if (entries.length === 0) return ''
  if (entries.some((entry) => entry.condition === 'always')) return indent('source translated always')
  const [first, ...rest] = entries.map((entry) => `when ${entry.condition}`)
  return indent([`source translated ${first}`, ...rest.map((condition) => `                  ${condition}`)].join('\n'))
}

function printSimulated(simulated: Readonly<Record<string, number>>): string {
  const total = Object.values(simulated).reduce((sum, count) => sum + count, 0)
  const rows = Object.entries(simulated).map(([address, count]) => [
    address,
    String(count),
    printShare(total === 0 ? 0 : count / total),
  ])
  return indent(printTable(['DRAWN', 'CONNECTIONS', 'SHARE'], rows))
}

function printBranches(branches: readonly Branch[]): string {
  const lines = branches.flatMap((branch) => {
    const targets = branch.targets.map((target) => `${target.address} ${printShare(target.share)}`).join(', ')
    const source = printSource(branch.masquerade)
    return [
      `when ${shorten(branch.when)}:`,
      `  ${branch.verdict.kind.toUpperCase()}  ${printReason(branch.verdict.because[0])}`,
      ...(targets === '' ? [] : [`  to ${targets}`]),
      ...(source === '' ? [] : [`  source translated ${source}`]),
    ]
  })
  return `other answers\n${indent(lines.join('\n'))}`
}

/** Many conditions that lead to one answer are cut in text; JSON has them all. */
function shorten(when: string): string {
  const parts = when.split('; or ')
  return parts.length <= 4 ? when : `${parts.slice(0, 4).join('; or ')}; or ${parts.length - 4} more`
}

function printSource(entries: readonly Masquerade[]): string {
  if (entries.length === 0) return ''
  if (entries.some((entry) => entry.condition === 'always')) return 'always'
  return `when ${entries.map((entry) => entry.condition).join('; or when ')}`
}

type Block = { readonly share: number | undefined; readonly hops: readonly Hop[] }

/** Hops in blocks of one share each; a block whose end repeats an earlier block's is cut short. */
function printHops(hops: readonly Hop[], isWide: boolean): string {
  const isReturn = (hop: Hop): boolean => hop.did === 'returned at the end of the chain'
  const blocks = blocksOf(isWide ? hops : hops.filter((hop) => !isReturn(hop)))
  const seen = new Map<string, string>()
  const rows: { readonly cells: readonly string[]; readonly under: string | undefined }[] = []
  for (const block of blocks) {
    const tailAt =
      block.share === undefined
        ? -1
        : block.hops.findIndex((hop) => hop.at.hook === 'routing' || hop.at.hook === 'POSTROUTING')
    const tail =
      tailAt < 0
        ? ''
        : block.hops
            .slice(tailAt)
            .map((hop) => `${place(hop)} ${hop.did} ${hop.when ?? ''}`)
            .join('\n')
    const earlier = isWide ? undefined : seen.get(tail)
    const shown = tail !== '' && earlier !== undefined ? block.hops.slice(0, tailAt) : block.hops
    for (const hop of shown) rows.push(rowOf(hop, isWide))
    if (shown.length < block.hops.length)
      rows.push({
        cells: ['', '', `then the same ${countOf(block.hops.length - shown.length, 'hop')} as ${earlier}`],
        under: undefined,
      })
    const name = block.hops.find((hop) => hop.after !== undefined)?.after
    if (tail !== '' && name !== undefined && !seen.has(tail)) seen.set(tail, name)
  }
  const table = printTable(
    ['HOOK', 'TABLE  CHAIN', 'WHAT WAS DONE, AND WHY'],
    rows.map((row) => row.cells),
  )
  const [header, ...lines] = table.trimEnd().split('\n')
  const withRules = lines.flatMap((line, index) =>
    rows[index]?.under === undefined ? [line] : [line, `    ${rows[index]?.under}`],
  )
  return `${indent([header, ...withRules].join('\n'))}`
}

function blocksOf(hops: readonly Hop[]): readonly Block[] {
  const blocks: { share: number | undefined; hops: Hop[] }[] = []
  for (const hop of hops) {
    const last = blocks.at(-1)
    const isNext = last === undefined || last.share !== hop.share || startsOver(last.hops, hop)
    if (isNext) blocks.push({ share: hop.share, hops: [hop] })
    else last.hops.push(hop)
  }
  return blocks
}

const hookOrder = ['PREROUTING', 'OUTPUT', 'routing', 'INPUT', 'FORWARD', 'POSTROUTING']

/** A hop of an earlier hook than the one before it belongs to another branch. */
function startsOver(hops: readonly Hop[], hop: Hop): boolean {
  const last = hops.at(-1)
  return last !== undefined && hookOrder.indexOf(hop.at.hook) < hookOrder.indexOf(last.at.hook)
}

function place(hop: Hop): string {
  return `${hop.at.hook} ${hop.at.table ?? ''} ${hop.at.chain ?? ''} ${hop.at.line ?? ''}`
}

function rowOf(hop: Hop, isWide: boolean): { readonly cells: readonly string[]; readonly under: string | undefined } {
  const line = hop.at.line === undefined ? '' : ` line ${hop.at.line}`
  const chain = hop.at.chain === undefined ? '' : `${hop.at.chain}${line}`
  const share = hop.share === undefined ? '' : ` [${printShare(hop.share)}]`
  const when = hop.when === undefined ? '' : `, when ${hop.when}`
  const done = `${hop.did}${share}${when}: ${hop.because}`
  return {
    cells: [hop.at.hook, `${(hop.at.table ?? '').padEnd(6)} ${chain}`.trimEnd(), done],
    under: isWide ? hop.rule : undefined,
  }
}

function indent(text: string): string {
  return `${text
    .trimEnd()
    .split('\n')
    .map((line) => `  ${line}`.trimEnd())
    .join('\n')}\n`
}
