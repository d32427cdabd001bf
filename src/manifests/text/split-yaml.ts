/** YAML documents cut apart at their `---` lines, so that each knows its line and a broken one leaves the others whole. */

/** `line` is where `text` begins in the file; `contentLine` is the first line that is more than blanks and comments. */
export type YamlDocument = { readonly text: string; readonly line: number; readonly contentLine: number }

/** Documents without content are left out. */
export function splitYaml(text: string): readonly YamlDocument[] {
  const documents: YamlDocument[] = []
  let line = 1
  for (let start = 0; start < text.length; ) {
    const end = nextMarker(text, start)
    const part = text.slice(start, end)
    const skipped = linesBeforeContent(part)
    if (skipped !== undefined) documents.push({ text: part, line, contentLine: line + skipped })
    line += countLineEnds(part)
    start = end
  }
  return documents
}

/** The offset of the next line that begins a document, or the end of the text. */
function nextMarker(text: string, start: number): number {
  for (let at = text.indexOf('\n---', start); at >= 0; at = text.indexOf('\n---', at + 1)) {
    const after = text.charAt(at + 4)
    if (after === '' || ' \t\r\n'.includes(after)) return at + 1
  }
  return text.length
}

const emptyLine = /^\s*(?:#.*|%.*|---\s*(?:#.*)?|\.\.\.\s*(?:#.*)?)?$/

function linesBeforeContent(text: string): number | undefined {
  let skipped = 0
  for (let start = 0; start < text.length; skipped++) {
    const newline = text.indexOf('\n', start)
    const end = newline < 0 ? text.length : newline
    // A long line is content; only short ones are worth a pattern.
    if (end - start > 1000 || !emptyLine.test(text.slice(start, end))) return skipped
    start = end + 1
  }
  return undefined
}

function countLineEnds(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++
  return count
}
