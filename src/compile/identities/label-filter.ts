/**
 * Which labels count for an identity: the default filter and configured ones. Mirrors pkg/labelsfilter, Cilium 1.18: the
 * longest match decides, a leading `!` excludes, and one configured inclusive pattern makes all the rest excluded.
 */
import type { Label } from './label'

type Pattern = { readonly source: string; readonly regexp: RegExp; readonly isExcluding: boolean }

export type LabelFilter = {
  readonly patterns: readonly Pattern[]
  readonly keepsOthers: boolean
  /** Answers by `source:key`: a cluster has few keys and many labels. */
  readonly known: Map<string, boolean>
}

const defaults: readonly string[] = [
  'reserved:.*',
  String.raw`io\.kubernetes\.pod\.namespace`,
  String.raw`io\.cilium\.k8s\.namespace\.labels`,
  String.raw`app\.kubernetes\.io`,
  String.raw`io\.cilium\.k8s\.policy\.cluster`,
  String.raw`io\.cilium\.k8s\.policy\.serviceaccount`,
  String.raw`!io\.kubernetes`,
  String.raw`!kubernetes\.io`,
  String.raw`!statefulset\.kubernetes\.io/pod-name`,
  String.raw`!apps\.kubernetes\.io/pod-index`,
  String.raw`!batch\.kubernetes\.io/job-completion-index`,
  String.raw`!batch\.kubernetes\.io/controller-uid`,
  String.raw`!beta\.kubernetes\.io`,
  String.raw`!k8s\.io`,
  '!pod-template-generation',
  '!pod-template-hash',
  '!controller-revision-hash',
  '!annotation.*',
  '!controller-uid',
  '!etcd_node',
]

/** `configured` is the value of the option `labels`: patterns apart by blanks. A pattern that is no regular expression is left out. */
export function parseLabelFilter(configured = ''): LabelFilter {
  const own = configured
    .split(/\s+/)
    .filter((text) => text !== '')
    .flatMap((text) => parsePattern(text) ?? [])
  return {
    patterns: [...defaults.flatMap((text) => parsePattern(text) ?? []), ...own],
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
  let longest = 0
  let isKept = keepsOthers
  for (const pattern of patterns) {
    if (pattern.source !== '' && pattern.source !== source) continue
    const length = pattern.regexp.exec(key)?.[0].length ?? 0
    if (length === 0 || length < longest) continue
    longest = length
    isKept = !pattern.isExcluding
  }
  return isKept
}

function parsePattern(text: string): Pattern | undefined {
  const isExcluding = text.startsWith('!')
  const bare = isExcluding ? text.slice(1) : text
  const colon = bare.indexOf(':')
  const source = colon < 0 ? '' : bare.slice(0, colon).replace(/^any$/, '')
  try {
    return { source, regexp: new RegExp(`^(?:${bare.slice(colon + 1)})`), isExcluding }
  } catch {
    return undefined
  }
}
