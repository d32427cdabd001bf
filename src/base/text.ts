/** Text for people: plurals, columns, and byte-order comparison. */

/** Compares by UTF-16 code unit, as Go and the C locale do for ASCII names. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** `1 endpoint`, `3 endpoints`, `2 addresses`. */
export function countOf(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`
}

/** `a`, `a and b`, `a, b and c`; longer lists end in `and N more`. */
export function listOf(items: readonly string[], most = 10): string {
  if (items.length > most) return `${items.slice(0, most).join(', ')} and ${items.length - most} more`
  if (items.length < 2) return items.join('')
  return `${items.slice(0, -1).join(', ')} and ${items[items.length - 1]}`
}

/** Control characters as `?`: names come from files, and a terminal would obey them. */
export function plainText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, '?')
}

/** Left-aligned columns two blanks apart, the last one unpadded, under a header row. */
export function printTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const plain = rows.map((row) => row.map(plainText))
  const widths = header.map((title, column) =>
    plain.reduce((width, row) => Math.max(width, (row[column] ?? '').length), title.length),
  )
  const printRow = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd()
  return [header, ...plain].map((row) => `${printRow(row)}\n`).join('')
}
