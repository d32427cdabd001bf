/** One document of a YAML text: a List item by item, so that one broken item leaves the others whole; anything else as it is. */
import { tryJson } from './parse-json'
import { parseYaml, type YamlProblem } from './parse-yaml'
import { isRecord } from './raw-object'
import { splitYamlList } from './split-list'
import type { YamlDocument } from './split-yaml'

/** `value` is absent when nothing can be read. Broken items of a List are undefined; `itemLines` tells where each stands. */
export type DocumentValue = {
  readonly value?: unknown
  readonly itemLines?: readonly number[]
  readonly problems: readonly YamlProblem[]
}

export function parseDocument(document: YamlDocument): DocumentValue {
  return parseJsonDocument(document) ?? parseList(document) ?? whole(document)
}

function whole(document: YamlDocument): DocumentValue {
  const result = parseYaml(document)
  return 'reason' in result ? { problems: [result] } : { value: result.value, problems: [] }
}

/** JSON between YAML markers, which JSON.parse reads ten times as fast. */
function parseJsonDocument({ text }: YamlDocument): DocumentValue | undefined {
  if (!/^(?:---)?\s*[[{]/.test(text)) return undefined
  const json = tryJson(text.replace(/^---/, ''))
  return json && { value: json.value, problems: [] }
}

/** Undefined when the document is no List in block style, or when its items need one another. */
function parseList(document: YamlDocument): DocumentValue | undefined {
  const list = splitYamlList(document)
  if (list === undefined) return undefined
  const head = parseYaml(list.head)
  if ('reason' in head || !isRecord(head.value) || !String(head.value.kind).endsWith('List')) return undefined
  const items: unknown[] = []
  const problems: YamlProblem[] = []
  for (const item of list.items) {
    const result = parseYaml(item)
    if ('reason' in result) {
      if (result.reason.startsWith('unidentified alias')) return undefined
      problems.push(result)
      items.push(undefined)
    } else items.push(Array.isArray(result.value) ? result.value[0] : result.value)
  }
  if (problems.length > 0 && problems.length === items.length) return { problems }
  return { value: { ...head.value, items }, itemLines: list.items.map(({ line }) => line), problems }
}
