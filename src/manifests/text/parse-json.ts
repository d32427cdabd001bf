/** JSON texts: one value, several one after another (JSON Lines), or the output of `kubectl cluster-info dump`. */
import { type JsonProblem, lineAndColumn, scanJson, skipBlanks } from './scan-json'

/** `line` is absent when the text is this one value. */
export type JsonText = { readonly value: unknown; readonly line?: number }

/** `place` is `line 3, column 7`. */
export type JsonRefusal = { readonly place: string; readonly reason: string; readonly isCut: boolean }

export function parseJson(text: string): readonly JsonText[] | JsonRefusal {
  const whole = tryJson(text)
  return whole === undefined ? parseSeveral(text) : [whole]
}

/** The value of a text that is JSON from end to end, else undefined. */
export function tryJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

function parseSeveral(text: string): readonly JsonText[] | JsonRefusal {
  const texts: JsonText[] = []
  let line = 1
  let counted = 0
  for (let at = skipLogs(text, 0); at < text.length; ) {
    if (text.startsWith(logsStart, at)) return refuse(text, endlessLog(text))
    const scan = scanJson(text, at)
    if ('reason' in scan) return refuse(text, scan)
    const one = tryJson(text.slice(at, scan.end))
    if (one === undefined) return refuse(text, { at, reason: 'the value that begins here is not JSON', isCut: false })
    line += countLines(text, counted, at)
    counted = at
    texts.push({ value: one.value, line })
    at = skipLogs(text, scan.end)
  }
  return texts
}

const logsStart = '==== START logs'

/** `kubectl cluster-info dump` writes the logs of every container between its Lists; one that does not end is left standing. */
function skipLogs(text: string, start: number): number {
  let at = skipBlanks(text, start)
  while (text.startsWith(logsStart, at)) {
    const end = text.indexOf('==== END logs', at)
    if (end < 0) return at
    const lineEnd = text.indexOf('\n', end)
    at = lineEnd < 0 ? text.length : skipBlanks(text, lineEnd)
  }
  return at
}

function endlessLog(text: string): JsonProblem {
  return { at: text.length, reason: 'the log of a container does not end', isCut: true }
}

function refuse(text: string, problem: JsonProblem): JsonRefusal {
  const { line, column } = lineAndColumn(text, problem.at)
  return { place: `line ${line}, column ${column}`, reason: problem.reason, isCut: problem.isCut }
}

function countLines(text: string, from: number, to: number): number {
  let count = 0
  for (let at = text.indexOf('\n', from); at >= 0 && at < to; at = text.indexOf('\n', at + 1)) count++
  return count
}
