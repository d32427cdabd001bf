/**
 * Which labels count for an identity: the default filter and configured ones. Mirrors pkg/labelsfilter, Cilium 1.16 to 1.19.
 * A label is left out where a pattern with `!` matches, unless one without matches more of it than the shortest of those;
 * one configured pattern without `!` leaves out all that no pattern without `!` matches.
 */
import { type CiliumVersion, defaultCiliumVersion, isAtLeast } from '#model/cilium-version'
import type { Label } from './label'

type Pattern = { readonly source: string; readonly regexp: RegExp; readonly isExcluding: boolean }

export type LabelFilter = {
  readonly patterns: readonly Pattern[]
  readonly keepsOthers: boolean
  /** Answers by `source:key`: a cluster has few keys and many labels. */
  readonly known: Map<string, boolean>
}

function defaultsOf(version: CiliumVersion): readonly string[] {
  return [
    'reserved:.*',
    String.raw`io\.kubernetes\.pod\.namespace`,
    String.raw`io\.cilium\.k8s\.namespace\.labels`,
    String.raw`app\.kubernetes\.io`,
    String.raw`io\.cilium\.k8s\.policy\.cluster`,
    ...(isAtLeast(version, '1.18') ? [String.raw`io\.cilium\.k8s\.policy\.serviceaccount`] : []),
    String.raw`!io\.kubernetes`,
    String.raw`!kubernetes\.io`,
    String.raw`!statefulset\.kubernetes\.io/pod-name`,
    String.raw`!apps\.kubernetes\.io/pod-index`,
    String.raw`!batch\.kubernetes\.io/job-completion-index`,
    String.raw`!batch\.kubernetes\.io/controller-uid`,
    // The documentation has it without `.*`, which the source of no version does.
    String.raw`!.*beta\.kubernetes\.io`,
    String.raw`!k8s\.io`,
    '!pod-template-generation',
    '!pod-template-hash',
    '!controller-revision-hash',
    '!annotation.*',
    '!controller-uid',
    '!etcd_node',
    // Since Kubernetes 1.35 pods have those of their node.
    ...(isAtLeast(version, '1.18') ? [String.raw`!topology\.kubernetes\.io`] : []),
  ]
}

/**
 * `configured` is the value of the option `labels`: patterns apart by blanks, each with `!` behind its source, if it has one
 * (`k8s:!job`). A pattern that is no regular expression is left out.
 */
export function parseLabelFilter(configured = '', version: CiliumVersion = defaultCiliumVersion): LabelFilter {
  const own = configured
    .split(/\s+/)
    .filter((text) => text !== '')
    .flatMap((text) => parsePattern(text) ?? [])
  return {
    patterns: [...defaultsOf(version).flatMap((text) => parsePattern(text) ?? []), ...own],
    keepsOthers: own.every((pattern) => pattern.isExcluding),
    known: new Map(),
  }
}

export function isIdentityLabel({ source, key }: Label, filter: LabelFilter): boolean {
  const text = `${source}:${key}`
  const found = filter.known.get(text) ?? asksPatterns(source, key, filter)
  filter.known.set(text, found)
  return found
}

function asksPatterns(source: string, key: string, { patterns, keepsOthers }: LabelFilter): boolean {
  let kept = 0
  let leftOut = 0
  for (const pattern of patterns) {
    if (pattern.source !== '' && pattern.source !== source) continue
    const length = pattern.regexp.exec(key)?.[0].length ?? 0
    if (length === 0) continue
    if (!pattern.isExcluding) kept = Math.max(kept, length)
    else leftOut = leftOut === 0 ? length : Math.min(leftOut, length)
  }
  return (keepsOthers && leftOut === 0) || kept > leftOut
}

/** A source is compared as it is written: `any` is none that a label has. */
function parsePattern(text: string): Pattern | undefined {
  const colon = text.indexOf(':')
  const source = text.slice(0, Math.max(colon, 0))
  const rest = text.slice(colon + 1)
  const isExcluding = rest.startsWith('!')
  if (rest === '') return undefined
  try {
    return { source, regexp: new RegExp(`^(?:${isExcluding ? rest.slice(1) : rest})`), isExcluding }
  } catch {
    return undefined
  }
}
