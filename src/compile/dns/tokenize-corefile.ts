/** The words of a Corefile: quotes, comments and blanks as Caddy's lexer reads them. */

export type Token = { readonly text: string; readonly line: number; readonly isQuoted: boolean }

const pattern = /\n|#[^\n]*|"((?:[^"\\]|\\[\s\S])*)(?:"|$)|[^\s"#][^\s#]*/g

export function tokenizeCorefile(text: string): readonly Token[] {
  const tokens: Token[] = []
  let line = 1
  for (const match of text.matchAll(pattern)) {
    const [whole, quoted] = match
    if (whole === '\n') line++
    else if (quoted !== undefined) {
      tokens.push({ text: unescapeQuotes(quoted), line, isQuoted: true })
      line += whole.split('\n').length - 1
    } else if (!whole.startsWith('#')) tokens.push({ text: whole, line, isQuoted: false })
  }
  return tokens
}

/** Only the quote itself is escaped; other backslashes stay, as regular expressions need them. */
function unescapeQuotes(text: string): string {
  return text.replaceAll('\\"', '"')
}
