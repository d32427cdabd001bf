/** Puts the values of a script's variables in their places: `define lan = { eth1, eth2 }`, then `iifname $lan`. */

const definition = /^[ \t]*(?:re)?define[ \t]+([A-Za-z_][\w.-]*)[ \t]*=[ \t]*/

/** Definitions become empty lines, so that every other line keeps its number. */
export function expandDefines(text: string): string {
  if (!/^[ \t]*(?:re)?define[ \t]/m.test(text)) return text
  const values = new Map<string, string>()
  const lines = text.split('\n')
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? ''
    const match = definition.exec(line)
    if (match === null) {
      lines[at] = expand(line, values)
      continue
    }
    const [head, name = ''] = match
    let value = withoutComment(line.slice(head.length))
    lines[at] = ''
    while (isOpen(value) && at + 1 < lines.length) {
      at++
      value = `${value.replace(/\\\s*$/, '')} ${withoutComment(lines[at] ?? '')}`
      lines[at] = ''
    }
    values.set(name, expand(value.trim(), values))
  }
  return lines.join('\n')
}

function expand(text: string, values: ReadonlyMap<string, string>): string {
  if (!text.includes('$')) return text
  return text.replaceAll(/\$([A-Za-z_][\w.-]*)/g, (all, name: string) => values.get(name) ?? all)
}

function withoutComment(text: string): string {
  return text.replace(/(^|\s)#.*$/, '').trimEnd()
}

/** Braces that are open, or a backslash at the end, go on in the next line. */
function isOpen(value: string): boolean {
  return value.endsWith('\\') || value.split('{').length > value.split('}').length
}
