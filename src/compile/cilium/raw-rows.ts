/** Rows of a map as bytes, as `bpftool map dump` prints them, as text or with `-j`. */
import type { RawRow } from './decode-raw'
import { parseHexBytes } from './read-bytes'

export type RawRows = {
  readonly rows: readonly RawRow[]
  readonly badLines: readonly number[]
  readonly isCut: boolean
}

/** Undefined for text that is none; `firstLine` is where it begins in its file. */
export function parseRawText(file: string, text: string, firstLine = 1): RawRows | undefined {
  // bpftool ends with their number, so that a dump without it is cut short.
  const told = /^Found (\d+) elements?$/m.exec(text)?.[1]
  const isWhole = told !== undefined
  if (!isWhole && !/^key:/m.test(text)) return undefined
  const rows: RawRow[] = []
  const badLines: number[] = []
  let line = firstLine
  const parts = text.split(/^(?=key:)/m)
  for (const part of isWhole ? parts : parts.slice(0, -1)) {
    const row = parsePart(part)
    if (row !== undefined) rows.push({ ...row, origin: { file, line } })
    else if (part.startsWith('key:')) badLines.push(line)
    line += part.split('\n').length - 1
  }
  return { rows, badLines, isCut: !isWhole || rows.length + badLines.length < Number(told) }
}

/** Short rows stand in one line, long ones below `key:` and `value:`. */
function parsePart(part: string): Pick<RawRow, 'key' | 'value'> | undefined {
  const found = /^key:\s*([\s\S]*?)\s*value:\s*([\s\S]*?)\s*(?:Found \d+ elements?)?\s*$/.exec(part)
  const [key, value] = [found?.[1], found?.[2]].map((text) =>
    text === undefined || text === '' ? undefined : parseHexBytes(text.split(/\s+/)),
  )
  return key === undefined || value === undefined ? undefined : { key, value }
}

/** Undefined for what is no list of keys and values as bytes. */
export function parseRawJson(file: string, parsed: unknown): readonly RawRow[] | undefined {
  if (!Array.isArray(parsed)) return undefined
  const rows = parsed.map((item: unknown) => rawRow(file, item))
  return rows[0] === undefined ? undefined : rows.flatMap((row) => row ?? [])
}

function rawRow(file: string, item: unknown): RawRow | undefined {
  if (typeof item !== 'object' || item === null || !('key' in item) || !('value' in item)) return undefined
  const [key, value] = [item.key, item.value].map((bytes) =>
    Array.isArray(bytes) ? parseHexBytes(bytes.map(String)) : undefined,
  )
  return key === undefined || value === undefined ? undefined : { key, value, origin: { file } }
}
