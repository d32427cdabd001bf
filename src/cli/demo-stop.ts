/** One stop of the demo: its tale, the command as it would be typed, and what the command says. */
import type { Captured } from './capture'
import type { Stop } from './demo-tour'
import type { Io } from './io'

/** What the capitals in a stop's command stand for. */
export type Names = Readonly<Record<string, string>>

export type Show = {
  readonly run: (command: string, names: Names) => Promise<Captured>
  readonly names: Names
}

export function wordsOf(command: string, names: Names): readonly string[] {
  return command.split(' ').map((word) => names[word] ?? word)
}

export async function showStop(
  io: Io,
  { run, names }: Show,
  { stop, number }: { readonly stop: Stop; readonly number: number },
): Promise<void> {
  const typed = wordsOf(stop.command, { ...names, RULES: 'node-b.save' }).join(' ')
  const { out, err, code } = await run(stop.command, names)
  const lines = out.trimEnd().split('\n')
  const kept = stop.only === undefined ? lines : lines.filter((line) => stop.only?.test(line))
  io.out(`\n${heading(io, `${number}. ${stop.title}`)}\n${stop.tale}\n\n${command(io, `portolan ${typed}`)}\n\n`)
  io.out(indent(kept.map((line) => (stop.marks?.test(line) ? marked(io, line) : line)).join('\n')))
  if (kept.length < lines.length) io.out(`    … ${lines.length - kept.length} other lines\n`)
  if (stop.showsNotes === true && err !== '') io.out(indent(err))
  if (code !== 0) io.out(`    (exit code ${code}: answered, and the answer is bad news)\n`)
}

export function indent(text: string): string {
  const lines = text.trimEnd().split('\n')
  return `${lines.map((line) => `    ${line}`.trimEnd()).join('\n')}\n`
}

export function heading(io: Io, text: string): string {
  return styled(io, 1, text)
}

export function command(io: Io, text: string): string {
  return styled(io, 36, `$ ${text}`)
}

function marked(io: Io, line: string): string {
  return styled(io, 33, line)
}

/** As ECMA-48 numbers it: 1 bold, 33 yellow, 36 cyan. */
function styled(io: Io, style: number, text: string): string {
  return io.isTerminal ? `\u001b[${style}m${text}\u001b[0m` : text
}
