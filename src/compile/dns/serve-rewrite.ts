/** The rewrite plugin: rules that change the question on its way in, and its answer on the way out (plugin/rewrite, 1.14). */
import type { Directive } from './corefile'
import { foldName, fqdn } from './domain-name'
import { goPattern } from './go-pattern'
import type { Plugin } from './plugin'
import type { Notes } from './plugin-notes'
import { type DnsRecord, type Question, type Reply, withDoubt } from './record'

/** How one rule changes a question; undefined when the rule does not match. */
export type RewriteRule = {
  readonly goesOn: boolean
  readonly apply: (question: Question) => Rewritten | undefined
}

type Rewritten = { readonly question: Question; readonly revert: (reply: Reply) => Reply }

type Source = {
  readonly words: readonly string[]
  readonly at: Directive
  readonly notes: Notes
  readonly goesOn: boolean
}

const unchanged = (reply: Reply): Reply => reply

export function readRewrite(at: Directive, notes: Notes): readonly RewriteRule[] {
  const [first = '', ...rest] = at.args
  const hasMode = first === 'continue' || first === 'stop'
  const words = hasMode ? rest : at.args
  const lines = at.block.map((option) => [option.name, ...option.args])
  const [head = [], ...tail] = words.length > 0 ? [words] : lines
  const rule = readRule({ words: [...head, ...tail.flat()], at, notes, goesOn: first === 'continue' })
  return rule === undefined ? [] : [rule]
}

/** All rules of a server block, in order; the first that matches is the last, unless it says `continue`. */
export function serveRewrites(rules: readonly RewriteRule[]): Plugin {
  return {
    name: 'rewrite',
    serve: (question, next) => {
      let changed = question
      const reverts: ((reply: Reply) => Reply)[] = []
      for (const rule of rules) {
        const rewritten = rule.apply(changed)
        if (rewritten === undefined) continue
        changed = rewritten.question
        reverts.push(rewritten.revert)
        if (!rule.goesOn) break
      }
      const reply = next(changed)
      if (reverts.length === 0) return reply
      const back = reverts.reduceRight((reverted, revert) => revert(reverted), reply)
      const isNew = foldName(changed.name) !== foldName(question.name)
      return isNew ? { ...back, because: `the Corefile rewrites it to ${changed.name}: ${back.because}` } : back
    },
  }
}

function readRule(source: Source): RewriteRule | undefined {
  const { words, at, notes, goesOn } = source
  const [field = '', ...rest] = words
  switch (field) {
    case 'name':
      return nameRule({ ...source, words: rest })
    case 'type': {
      const [from = '', to = ''] = rest.map((word) => word.toUpperCase())
      const apply = (question: Question): Rewritten | undefined =>
        question.type === from ? { question: { ...question, type: to }, revert: unchanged } : undefined
      return { goesOn, apply }
    }
    case 'ttl':
      return ttlRule({ ...source, words: rest })
    case 'class':
    case 'edns0':
      return undefined
    case 'cname':
    case 'rcode': {
      const doubt = `Portolan does not know the rule "rewrite ${words.join(' ')}"`
      return { goesOn: true, apply: (question) => ({ question, revert: (reply) => withDoubt(reply, doubt) }) }
    }
    default:
      notes.bad(at, `rewrite has no rule "${field}"`)
      return undefined
  }
}

const matchKinds = ['exact', 'prefix', 'suffix', 'substring', 'regex'] as const
type MatchKind = (typeof matchKinds)[number]

function splitKind(words: readonly string[]): { readonly kind: MatchKind; readonly rest: readonly string[] } {
  const kind = matchKinds.find((word) => word === words[0])
  return kind === undefined ? { kind: 'exact', rest: words } : { kind, rest: words.slice(1) }
}

function nameRule({ words, at, notes, goesOn }: Source): RewriteRule | undefined {
  const { kind, rest } = splitKind(words)
  const [from = '', to = '', ...after] = rest
  const change = renamer(kind, from, to)
  if (change === undefined) {
    notes.bad(at, `"${from}" is not a pattern that Portolan can read`)
    return undefined
  }
  const apply = (question: Question): Rewritten | undefined => {
    const renamed = change(foldName(question.name))
    if (renamed === undefined) return undefined
    const isReverted = kind === 'exact' || (after[0] === 'answer' && after[1] === 'auto')
    const rename = isReverted ? backTo(question.name, renamed) : answerRename(after)
    return { question: { ...question, name: renamed }, revert: (reply) => renameOwners(reply, rename) }
  }
  return { goesOn, apply }
}

type Rename = (name: string) => string | undefined

/** Names are matched folded and with the closing dot, which `exact` and `suffix` need not write. */
function renamer(kind: MatchKind, from: string, to: string): Rename | undefined {
  const plain = from.toLowerCase()
  switch (kind) {
    case 'exact':
      return (name) => (name === foldName(from) ? fqdn(to) : undefined)
    case 'prefix':
      return (name) => (name.startsWith(plain) ? fqdn(to + name.slice(plain.length)) : undefined)
    case 'suffix': {
      const end = fqdn(plain)
      return (name) => (name.endsWith(end) ? fqdn(name.slice(0, name.length - end.length) + to) : undefined)
    }
    case 'substring':
      return (name) => (name.includes(plain) ? fqdn(name.replaceAll(plain, to)) : undefined)
    case 'regex':
      return patternRenamer(from, to)
    default:
      return kind satisfies never
  }
}

function patternRenamer(from: string, to: string): Rename | undefined {
  const pattern = goPattern(from)
  if (pattern === undefined) return undefined
  return (name) => {
    // CoreDNS tries the name with its closing dot, then without.
    const match = pattern.exec(name) ?? pattern.exec(name.slice(0, -1))
    return match === null
      ? undefined
      : fqdn(to.replaceAll(/\{(\d+)\}/g, (_, group: string) => match[Number(group)] ?? ''))
  }
}

function backTo(asked: string, renamed: string): Rename {
  return (name) => (foldName(name) === foldName(renamed) ? asked : undefined)
}

function answerRename(words: readonly string[]): Rename {
  const at = words.indexOf('name')
  const [from, to] = at < 0 ? [] : words.slice(at + 1)
  if (words[0] !== 'answer' || from === undefined || to === undefined) return () => undefined
  return patternRenamer(from, to) ?? (() => undefined)
}

function renameOwners(reply: Reply, rename: Rename): Reply {
  const set = (record: DnsRecord): DnsRecord => ({ ...record, name: rename(record.name) ?? record.name })
  return { ...reply, answers: reply.answers.map(set), additional: reply.additional.map(set) }
}

function ttlRule({ words, goesOn }: Source): RewriteRule | undefined {
  const { kind, rest } = splitKind(words)
  const [from = '', text = ''] = rest
  const test = renamer(kind, from, from)
  const [, least = '', most] = /^(\d+)?(?:-(\d+))?$/.exec(text) ?? []
  const limit = (ttl: number): number => {
    if (most === undefined && !text.includes('-')) return Number(text)
    return Math.min(most === undefined ? 2147483647 : Number(most), Math.max(least === '' ? 0 : Number(least), ttl))
  }
  const set = (records: readonly DnsRecord[]): readonly DnsRecord[] =>
    records.map((record) => ({ ...record, ttl: limit(record.ttl) }))
  const revert = (reply: Reply): Reply => ({ ...reply, answers: set(reply.answers) })
  const apply = (question: Question): Rewritten | undefined =>
    test?.(foldName(question.name)) === undefined ? undefined : { question, revert }
  return /^\d*(-\d*)?$/.test(text) && text !== '' ? { goesOn, apply } : undefined
}
