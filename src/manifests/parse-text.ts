/** From the text of one file to the objects in it, whether it is JSON or YAML, one or many. */
import type { Finding, Parsed } from '#base/finding'
import { manifestFinding } from './findings'
import { type Gathered, gatherObjects } from './text/flatten-lists'
import { parseDocument } from './text/parse-document'
import { type JsonRefusal, parseJson } from './text/parse-json'
import type { YamlProblem } from './text/parse-yaml'
import type { RawObject } from './text/raw-object'
import { recogniseText } from './text/recognise-text'
import { splitYaml, type YamlDocument } from './text/split-yaml'

/** Why nothing of a text is used: `foreign` is readable but no Kubernetes object, `cut-short` would give half an answer. */
export type Refusal = { readonly reason: 'empty' | 'foreign' | 'broken' | 'cut-short'; readonly message: string }

export type ParsedText = Parsed<readonly RawObject[]> & { readonly refusal?: Refusal }

const remedy = 'write the objects into it, for example with kubectl get pods,services -A -o yaml'

/** `file` is the name that findings give. */
export function parseManifestText(marked: string, file: string): ParsedText {
  const text = marked.startsWith('\ufeff') ? marked.slice(1) : marked
  const gathered: Gathered = { objects: [], findings: [], seenLists: new Set(), hasList: false }
  const first = firstCharacter(text)
  if (first === '') return refuse('empty', `it is empty; ${remedy}`)
  const known = recogniseText(text)
  if (known !== undefined) return refuse(known.isError ? 'broken' : 'foreign', known.message)
  const json = first === '{' || first === '[' ? parseJson(text) : undefined
  if (json !== undefined && 'length' in json) {
    for (const { value, line } of json) {
      gatherObjects({ value, origin: line === undefined ? { file } : { file, line } }, gathered)
    }
    return parsed(gathered, file)
  }
  if (json?.isCut) {
    return refuse('cut-short', `the JSON ends too early, at ${json.place} (${json.reason}); write the whole file again`)
  }
  return parseDocuments(splitYaml(text), { file, json, gathered })
}

type DocumentContext = { readonly file: string; readonly json: JsonRefusal | undefined; readonly gathered: Gathered }

/** `json` says what is wrong with the text as JSON, if it looks like that: it is told when it is not YAML either. */
function parseDocuments(documents: readonly YamlDocument[], { file, json, gathered }: DocumentContext): ParsedText {
  if (documents.length === 0) return refuse('empty', `it holds nothing but comments; ${remedy}`)
  const broken: Finding[] = []
  let used = 0
  for (const document of documents) {
    const { value, itemLines, problems } = parseDocument(document)
    for (const problem of problems) broken.push(brokenPart(problem, file))
    if (value === undefined) continue
    used++
    gatherObjects({ value, origin: { file, line: document.contentLine }, ...(itemLines && { itemLines }) }, gathered)
  }
  const [first] = broken
  if (first !== undefined && used === 0) {
    if (json !== undefined) return refuse('broken', `it is neither JSON nor YAML: at ${json.place}, ${json.reason}`)
    return refuse('broken', `line ${first.origin?.line}: ${first.message}; ${first.hint}`)
  }
  for (const finding of broken) gathered.findings.push(finding)
  return parsed(gathered, file)
}

function brokenPart({ line, reason, hint }: YamlProblem, file: string): Finding {
  const message = `this part of the YAML cannot be read: ${reason}`
  return manifestFinding('manifest.broken-document', { message, origin: { file, line }, hint })
}

/** The first character that is no blank, or nothing. */
function firstCharacter(text: string): string {
  return /\S/.exec(text)?.[0] ?? ''
}

/** A text that holds something, but nothing that is an object, is refused; an empty List is an answer, and told. */
function parsed(gathered: Gathered, file: string): ParsedText {
  const first = gathered.findings.find(({ code }) => code !== 'manifest.nested-list')
  if (gathered.objects.length === 0 && first !== undefined) {
    const { line, index } = first.origin ?? {}
    const place = index ?? (line === undefined ? undefined : `line ${line}`)
    const reason = first.code === 'manifest.not-an-object' ? 'foreign' : 'broken'
    // Of a text that is refused whole, no part is left out.
    const message = first.message.replace(/(?:, and|; it) is left out$/, '')
    return refuse(reason, [place, `${message}; ${first.hint}`].filter((part) => part !== undefined).join(': '))
  }
  if (gathered.objects.length === 0) {
    const message = 'there are no objects in it'
    const place = { ...(gathered.hasList && { path: 'items' }), origin: { file } }
    gathered.findings.push(manifestFinding('manifest.no-objects', { message, ...place, hint: remedy }))
  }
  return { value: gathered.objects, findings: gathered.findings }
}

function refuse(reason: Refusal['reason'], message: string): ParsedText {
  return { value: [], findings: [], refusal: { reason, message } }
}
