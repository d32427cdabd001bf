/** A finding: something true of the user's cluster or input, told as a value beside the answer. */
import { plainText } from './text'

export type Severity = 'error' | 'warning' | 'info'

/** A room's table of findings, by code; docs/findings.md is made of these. */
export type FindingTable = Readonly<Record<string, { readonly severity: Severity; readonly meaning: string }>>

/** Where a thing was read: a file (`-` is standard input), and the line or the place in it. */
export type Origin = { readonly file: string; readonly line?: number; readonly index?: string }

/** An object by kind and name; `namespace` is absent for cluster-scoped kinds. */
export type ObjectRef = { readonly kind: string; readonly namespace?: string; readonly name: string }

/** `path` is the field inside the object, in JSON path words: `spec.ports[0].port`. */
export type Finding = {
  readonly code: string
  readonly severity: Severity
  readonly message: string
  readonly object?: ObjectRef
  readonly path?: string
  readonly origin?: Origin
  readonly hint?: string
}

/** What a parser returns: it never throws on the user's text. */
export type Parsed<T> = { readonly value: T; readonly findings: readonly Finding[] }

export function printRef(ref: ObjectRef): string {
  return ref.namespace === undefined ? `${ref.kind} ${ref.name}` : `${ref.kind} ${ref.namespace}/${ref.name}`
}

/** `nodes.json items[3]`, `web.yaml:12`. */
export function printOrigin(origin: Origin): string {
  const file = origin.file === '-' ? 'standard input' : origin.file
  const place = origin.index === undefined ? '' : ` ${origin.index}`
  return origin.line === undefined ? `${file}${place}` : `${file}:${origin.line}${place}`
}

/** What an object of a live cluster is called where it was read: `cluster prod: Service/shop/web`. */
export function clusterOrigin(context: string, { kind, namespace, name }: ObjectRef): Origin {
  return { file: `cluster ${context}: ${[kind, namespace, name].filter((part) => part !== undefined).join('/')}` }
}

function isNamedBy({ file }: Origin, { kind, namespace, name }: ObjectRef): boolean {
  return file.startsWith('cluster ') && file.endsWith(`: ${[kind, namespace, name].filter(Boolean).join('/')}`)
}

/** One line for stderr: `warning: web.yaml:12 Service shop/web spec.ports[0]: message (hint) [code]`. */
export function printFinding(finding: Finding): string {
  const { origin, object } = finding
  const place = [
    origin && printOrigin(origin),
    object && (origin === undefined || !isNamedBy(origin, object)) ? printRef(object) : undefined,
    finding.path,
  ].filter((part) => part !== undefined && part !== '')
  const where = place.length === 0 ? '' : `${place.join(' ')}: `
  const hint = finding.hint === undefined ? '' : `; ${finding.hint}`
  return plainText(`${finding.severity}: ${where}${finding.message}${hint} [${finding.code}]`)
}
