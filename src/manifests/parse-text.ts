/** From the text of one file to the objects in it, whether it is JSON or YAML, one or many. */
import type { Finding, Parsed } from '#base/finding'
import { manifestFinding } from './findings'
import { type Gathered, gatherObjects } from './text/flatten-lists'
import { type JsonRefusal, parseJson, tryJson } from './text/parse-json'
import { parseYaml } from './text/parse-yaml'
import type { RawObject } from './text/raw-object'
import { splitYaml, type YamlDocument } from './text/split-yaml'

/** Why nothing of a text is used: `foreign` is readable but no Kubernetes object, `cut-short` would give half an answer. */
export type Refusal = { readonly reason: 'empty' | 'foreign' | 'broken' | 'cut-short'; readonly message: string }

export type ParsedText = Parsed<readonly RawObject[]> & { readonly refusal?: Refusal }

const remedy = 'write the objects into it, for example with kubectl get -A -o yaml'

/** `file` is the name that findings give. */
export function parseManifestText(text: string, file: string): ParsedText {
  const gathered: Gathered = { objects: [], findings: [], seenLists: new Set() }
  const first = firstCharacter(text)
  if (first === '')
    return refuse('empty', 'it is empty; write the objects into it, for example with kubectl get -o yaml')
  const json = first === '{' || first === '[' ? parseJson(text) : undefined
  if (json !== undefined && 'length' in json) {
    for (const { value, line } of json) {
      gatherObjects(value, line === undefined ? { file } : { file, line }, gathered)
    }
    return parsed(gathered)
  }
  if (json?.isCut) {
    return refuse('cut-short', `the JSON ends too early, at ${json.place} (${json.reason}); write the whole file again`)
  }
  return parseDocuments(splitYaml(text), { file, json, gathered })
}

type DocumentContext = { readonly file: string; readonly json: JsonRefusal | undefined; readonly gathered: Gathered }

/** `json` says what is wrong with the text as JSON, if it looks like that: it is told when it is not YAML either. */
function parseDocuments(documents: readonly YamlDocument[], { file, json, gathered }: DocumentContext): ParsedText {
  const broken: Finding[] = []
  for (const document of documents) {
    const origin = { file, line: document.contentLine }
    const result = tryJsonDocument(document) ?? parseYaml(document)
    if ('value' in result) gatherObjects(result.value, origin, gathered)
    else {
      const message = `this YAML document cannot be read: ${result.reason}`
      const problem = { message, origin: { file, line: result.line }, hint: result.hint }
      broken.push(manifestFinding('manifest.broken-document', problem))
    }
  }
  const [first] = broken
  if (first !== undefined && broken.length === documents.length) {
    if (json !== undefined) return refuse('broken', `it is neither JSON nor YAML: at ${json.place}, ${json.reason}`)
    return refuse('broken', `line ${first.origin?.line}: ${first.message}; ${first.hint}`)
  }
  if (documents.length === 0) return refuse('empty', `it holds nothing but comments; ${remedy}`)
  for (const finding of broken) gathered.findings.push(finding)
  return parsed(gathered)
}

function tryJsonDocument(document: YamlDocument): { readonly value: unknown } | undefined {
  const first = firstCharacter(document.text.slice(0, 200).replace(/^---/, ''))
  return first === '{' || first === '[' ? tryJson(document.text.replace(/^---/, '')) : undefined
}

/** The first character that is no blank, or nothing. */
function firstCharacter(text: string): string {
  return /\S/.exec(text)?.[0] ?? ''
}

/** A text that holds something, but nothing that is an object, is refused; an empty List is an answer. */
function parsed(gathered: Gathered): ParsedText {
  const [first] = gathered.findings
  if (gathered.objects.length === 0 && first !== undefined && first.code !== 'manifest.nested-list') {
    const { line, index } = first.origin ?? {}
    const place = index ?? (line === undefined ? undefined : `line ${line}`)
    const reason = first.code === 'manifest.not-an-object' ? 'foreign' : 'broken'
    return refuse(reason, [place, `${first.message}; ${first.hint}`].filter((part) => part !== undefined).join(': '))
  }
  return { value: gathered.objects, findings: gathered.findings }
}

function refuse(reason: Refusal['reason'], message: string): ParsedText {
  return { value: [], findings: [], refusal: { reason, message } }
}
