/** One YAML document as the API server's tools read it, or why it cannot be read. */
import { CORE_SCHEMA, defineScalarTag, intCoreTag, load, mergeTag, YAMLException } from 'js-yaml'
import type { YamlDocument } from './split-yaml'

export type YamlProblem = { readonly line: number; readonly reason: string; readonly hint: string }

/** kubectl reads a number with a leading zero as octal, where YAML 1.2 would not: `010` is 8. */
const intTag = defineScalarTag<number>('tag:yaml.org,2002:int', {
  implicit: true,
  implicitFirstChars: intCoreTag.implicitFirstChars,
  resolve: (source, isExplicit, tagName) =>
    /^[-+]?0[0-7]+$/.test(source) ? Number.parseInt(source, 8) : intCoreTag.resolve(source, isExplicit, tagName),
  identify: () => false,
})

/** kubectl honours merge keys (`<<`) too. */
const schema = CORE_SCHEMA.withTags(mergeTag, intTag)

/** Aliases share what they name, but readers walk it once for each: a few hundred are plenty for people. */
const limits = { maxDepth: 100, maxAliases: 200, maxTotalMergeKeys: 10_000 }

/** js-yaml takes some fifteen times the room of the text. */
const mostCharacters = 64 * 1024 * 1024

export function parseYaml(document: YamlDocument): { readonly value: unknown } | YamlProblem {
  if (document.text.length > mostCharacters) {
    const reason = 'it is larger than 64 MB, the most that one YAML document may have'
    return { line: document.contentLine, reason, hint: 'take it as JSON (kubectl get -o json), or split it' }
  }
  try {
    return { value: load(document.text, { schema, ...limits }) }
  } catch (error) {
    return explain(document, error)
  }
}

function explain(document: YamlDocument, error: unknown): YamlProblem {
  const mark = error instanceof YAMLException ? error.mark : undefined
  const line = mark === undefined ? document.contentLine : document.line + mark.line
  const text = mark === undefined ? '' : lineAt(document.text, mark.position)
  const reason = error instanceof YAMLException ? error.reason : 'it is nested too deeply'
  return { line, ...reword(reason, text, document.text) }
}

/** js-yaml's reasons in our words, with what to do; others are passed on. */
function reword(reason: string, line: string, text: string): { readonly reason: string; readonly hint: string } {
  if (text.includes('{{')) {
    return { reason: `it is a template, not YAML (${reason})`, hint: 'render it first, for example with helm template' }
  }
  if (reason.includes('tab char') || /^ *\t/.test(line)) {
    return { reason: 'a line is indented with a tab, which YAML forbids', hint: 'replace the tab with blanks' }
  }
  if (reason.includes('alias') && !reason.includes('unidentified')) {
    return { reason: `it has more than ${limits.maxAliases} aliases (*name)`, hint: 'write out what they stand for' }
  }
  if (reason.includes('maxDepth')) {
    return { reason: `it is nested more than ${limits.maxDepth} levels deep`, hint: 'check how the file was made' }
  }
  if (reason.includes('null byte')) return { reason: 'it holds a null byte', hint: 'give YAML or JSON text' }
  if (reason.includes('duplicated mapping key')) return { reason: 'a key stands twice in one map', hint: 'delete one' }
  return { reason, hint: 'mend the line, or take the object afresh with kubectl get -o yaml' }
}

function lineAt(text: string, position: number): string {
  const start = text.lastIndexOf('\n', position - 1) + 1
  const end = text.indexOf('\n', position)
  return text.slice(start, end < 0 ? undefined : end).slice(0, 200)
}
