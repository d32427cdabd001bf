/** Reading a cluster from files, folders and standard input, as `--from` names them. */
import { basename } from 'node:path'
import { Failure } from '#base/failure'
import type { Finding, Parsed } from '#base/finding'
import { countOf, listOf } from '#base/text'
import { type BuildOptions, buildCluster } from '#manifests/build-cluster'
import { type ParsedText, parseManifestText, type Refusal } from '#manifests/parse-text'
import type { RawObject } from '#manifests/text/raw-object'
import type { Cluster } from '#model/cluster'
import { sourceFinding } from './findings'
import { listFolder } from './list-folder'
import type { Progress } from './progress'
import { kindOfPath, megabytes, progressOf, type ReadOptions, readPath } from './read-text'

/** Where objects come from. Files and folders are such sources; a live API can be one. */
export type ObjectSource = (progress: Progress) => Promise<Parsed<readonly RawObject[]>>

/** Throws `Failure` when a path cannot be read, or when nothing of it can be used. */
export async function readFrom(
  paths: readonly string[],
  options: ReadOptions & BuildOptions = {},
): Promise<Parsed<Cluster>> {
  if (paths.length === 0) {
    throw new Failure(
      'usage.bad-argument',
      'no input is named; add --from with a file, a folder, or - for standard input',
    )
  }
  if (paths.filter((path) => path === '-').length > 1) {
    throw new Failure('usage.bad-argument', 'standard input (-) is named twice, but can be read once; name it once')
  }
  return readCluster(
    paths.map((path) => sourceAt(path, options)),
    options,
  )
}

/** Objects of later sources win over those of earlier ones. */
export async function readCluster(
  sources: readonly ObjectSource[],
  options: ReadOptions & BuildOptions = {},
): Promise<Parsed<Cluster>> {
  const progress = progressOf(options)
  const objects: RawObject[] = []
  const findings: Finding[] = []
  for (const source of sources) {
    const read = await source(progress)
    for (const object of read.value) objects.push(object)
    for (const finding of read.findings) findings.push(finding)
  }
  progress.tell(() => `putting together ${countOf(objects.length, 'object')}`)
  const cluster = buildCluster(objects, options)
  for (const finding of cluster.findings) findings.push(finding)
  return { value: cluster.value, findings }
}

export function sourceAt(path: string, options: ReadOptions): ObjectSource {
  return async (progress) => {
    const isFolder = path !== '-' && (await kindOfPath(path)) === 'folder'
    return isFolder ? readFolder(path, options, progress) : readSingle(path, options, progress)
  }
}

async function readSingle(
  path: string,
  options: ReadOptions,
  progress: Progress,
): Promise<Parsed<readonly RawObject[]>> {
  const read = await readPath(path, options, progress)
  if (read.decoded.kind === 'foreign') throw new Failure('input.unreadable', `${read.name} ${read.decoded.message}`)
  const parsed = parse(read.decoded.text, { ...read, file: path }, progress)
  if (parsed.refusal !== undefined) throw refusalOf(parsed.refusal, read.name)
  return parsed
}

/** One bad file does not spoil a folder, but a file that is cut short does: half of it would give a wrong answer. */
async function readFolder(
  folder: string,
  options: ReadOptions,
  progress: Progress,
): Promise<Parsed<readonly RawObject[]>> {
  const { files, ignored } = await listFolder(folder)
  const objects: RawObject[] = []
  const findings: Finding[] = []
  const emptyLists: Finding[] = []
  let used = 0
  for (const file of files) {
    const read = await readMember(file, options, progress)
    if (read.refusal === undefined) used++
    for (const object of read.value) objects.push(object)
    for (const finding of read.findings) (isEmptyList(finding) ? emptyLists : findings).push(finding)
  }
  if (objects.length === 0) for (const finding of emptyLists) findings.push(finding)
  if (used === 0) throw nothingIn(folder, findings)
  if (ignored.length > 0) {
    const names = listOf([...new Set(ignored.map((path) => basename(path)))], 5)
    const message = `${countOf(ignored.length, 'file')} in ${folder} left aside, being hidden or no files of .yaml, .yml, .json or .gz: ${names}`
    findings.push(sourceFinding('source.ignored-files', { message }))
  }
  return { value: objects, findings }
}

/** A cluster-info dump has a List for each kind in each namespace, most of them without items, which is nothing to tell. */
function isEmptyList({ code, path }: Finding): boolean {
  return code === 'manifest.no-objects' && path === 'items'
}

async function readMember(file: string, options: ReadOptions, progress: Progress): Promise<ParsedText> {
  const read = await readPath(file, options, progress)
  if (read.decoded.kind === 'foreign')
    return leaveOut(file, { reason: 'foreign', message: `it ${read.decoded.message}` })
  const parsed = parse(read.decoded.text, { ...read, file }, progress)
  const { refusal } = parsed
  if (refusal?.reason === 'cut-short') throw refusalOf(refusal, file)
  return refusal === undefined ? parsed : leaveOut(file, refusal)
}

function leaveOut(file: string, refusal: Refusal): ParsedText {
  const code = refusal.reason === 'broken' ? 'source.unreadable-file' : 'source.foreign-file'
  const message = `the file is left out: ${refusal.message}`
  return { value: [], findings: [sourceFinding(code, { message, origin: { file } })], refusal }
}

type TextOf = { readonly name: string; readonly size: number; readonly file: string }

function parse(text: string, { name, size, file }: TextOf, progress: Progress): ParsedText {
  // JSON.parse reads some 100 MB a second, YAML a tenth of that, and neither can be interrupted to tell.
  const isLong = text.length > (/^\s*[[{]/.test(text) ? 200e6 : 20e6)
  if (isLong) progress.announce(`reading the objects in ${name} (${megabytes(size)} MB)`)
  return parseManifestText(text, file)
}

function refusalOf({ reason, message }: Refusal, name: string): Failure {
  const code = reason === 'cut-short' ? 'input.unreadable' : 'input.not-objects'
  return new Failure(code, `${name} cannot be used: ${message}`)
}

function nothingIn(folder: string, findings: readonly Finding[]): Failure {
  const [first] = findings
  const wanted = `${folder} holds no file with Kubernetes objects`
  if (first === undefined) {
    return new Failure('input.not-objects', `${wanted}; files are read whose names end in .yaml, .yml, .json or .gz`)
  }
  return new Failure('input.not-objects', `${wanted}: in ${first.origin?.file}, ${first.message}`)
}
