/** Splits a rule line into words as iptables-restore does: double quotes hold a word together, a backslash keeps the next character. */

/** `literal` are the words in quotes that look like an option or a negation and are neither. */
export type Words = { readonly words: readonly string[]; readonly literal?: ReadonlySet<number> }

/** Undefined when a quote is left open. */
export function tokenize(line: string): Words | undefined {
  if (line.indexOf('"') < 0 && line.indexOf("'") < 0 && line.indexOf('\t') < 0) {
    const words = line.split(' ')
    return { words: words.includes('') ? words.filter((word) => word !== '') : words }
  }
  return tokenizeQuoted(line)
}

function tokenizeQuoted(line: string): Words | undefined {
  const words: string[] = []
  let literal: Set<number> | undefined
  let index = 0
  while (index < line.length) {
    const code = line.charCodeAt(index)
    if (code === 32 || code === 9) {
      index++
    } else if (code === 34 || code === 39) {
      const end = closingQuote(line, index)
      if (end < 0) return undefined
      const inside = line.slice(index + 1, end)
      if (inside.startsWith('-') || inside === '!') {
        literal ??= new Set()
        literal.add(words.length)
      }
      words.push(inside.includes('\\') ? inside.replace(/\\(.)/g, '$1') : inside)
      index = end + 1
    } else {
      let end = index
      while (end < line.length && line.charCodeAt(end) !== 32 && line.charCodeAt(end) !== 9) end++
      words.push(line.slice(index, end))
      index = end
    }
  }
  return literal === undefined ? { words } : { words, literal }
}

function closingQuote(line: string, open: number): number {
  const quote = line[open] ?? '"'
  let end = line.indexOf(quote, open + 1)
  while (end > 0 && isEscaped(line, end)) end = line.indexOf(quote, end + 1)
  return end
}

function isEscaped(line: string, index: number): boolean {
  let slashes = 0
  while (line.charCodeAt(index - 1 - slashes) === 92) slashes++
  return slashes % 2 === 1
}
