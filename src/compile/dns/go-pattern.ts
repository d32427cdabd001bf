/** Go's regular expressions in JavaScript's words, as far as Corefiles use them. */

/** Undefined when the pattern cannot be read. */
export function goPattern(text: string): RegExp | undefined {
  const flags = /^\(\?([is]+)\)/.exec(text)
  const body = text
    .slice(flags?.[0].length ?? 0)
    .replaceAll('(?P<', '(?<')
    .replaceAll('\\A', '^')
    .replaceAll('\\z', '$')
  try {
    return new RegExp(body, flags?.[1] ?? '')
  } catch {
    return undefined
  }
}
