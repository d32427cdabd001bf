/** The template plugin: records made from the question by patterns in the Corefile (plugin/template, CoreDNS 1.14). */
import type { Directive } from './corefile'
import { foldName, fqdn, matchZone, zonesOfOrigin } from './domain-name'
import { type Fallthrough, fallsThrough, parseFallthrough } from './fallthrough'
import { goPattern } from './go-pattern'
import { parseRecord } from './parse-record'
import type { Handler, Plugin } from './plugin'
import type { Notes } from './plugin-notes'
import { type DnsRecord, emptyReply, type Question, type Rcode, type Reply, withDoubt } from './record'

export type Template = {
  readonly type: string
  readonly zones: readonly string[]
  readonly patterns: readonly RegExp[]
  readonly rcode: Rcode
  readonly answer: readonly string[]
  readonly additional: readonly string[]
  readonly authority: readonly string[]
  readonly fallthrough: Fallthrough
}

const rcodes = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED'] as const satisfies readonly Rcode[]

/** Undefined for a template of another class, which no question here is of. */
export function readTemplate(directive: Directive, serverZones: readonly string[], notes: Notes): Template | undefined {
  const [group = '', type = '', ...own] = directive.args
  if (!/^(IN|ANY)$/i.test(group)) return undefined
  const argsOf = (name: string): readonly string[] =>
    directive.block.filter((option) => option.name === name).flatMap((option) => option.args)
  const patterns = argsOf('match').flatMap((text) => {
    const pattern = goPattern(text)
    if (pattern === undefined) notes.bad(directive, `"${text}" is not a pattern that Portolan can read`)
    return pattern === undefined ? [] : [pattern]
  })
  const fall = directive.block.find((option) => option.name === 'fallthrough')
  const word = argsOf('rcode')[0]?.toUpperCase()
  return {
    type: type.toUpperCase(),
    zones: own.length === 0 ? serverZones : own.flatMap(zonesOfOrigin),
    patterns: patterns.length === 0 ? [/.*/] : patterns,
    rcode: rcodes.find((rcode) => rcode === word) ?? 'NOERROR',
    answer: argsOf('answer'),
    additional: argsOf('additional'),
    authority: argsOf('authority'),
    fallthrough: fall === undefined ? [] : parseFallthrough(fall.args),
  }
}

/** All templates of a server block, in order. `lookUp` finds the addresses of a CNAME that a template makes. */
export function serveTemplates(templates: readonly Template[], lookUp: Handler): Plugin {
  return {
    name: 'template',
    serve: (question, next) => {
      const folded = foldName(question.name)
      for (const template of templates) {
        const zone = matchZone(folded, template.zones)
        if (zone === undefined || (template.type !== 'ANY' && template.type !== question.type)) continue
        const match = firstMatch(template.patterns, folded)
        if (match !== undefined) return fillReply(question, template, { zone, match, lookUp })
        if (!fallsThrough(template.fallthrough, folded)) {
          return emptyReply('SERVFAIL', 'template', `a template of ${zone} matches no pattern and has no fallthrough`)
        }
      }
      return next(question)
    },
  }
}

type Match = RegExpExecArray
type Filling = { readonly zone: string; readonly match: Match; readonly lookUp: Handler }

function firstMatch(patterns: readonly RegExp[], name: string): Match | undefined {
  for (const pattern of patterns) {
    const match = pattern.exec(name)
    if (match !== null) return match
  }
  return undefined
}

function fillReply(question: Question, template: Template, { zone, match, lookUp }: Filling): Reply {
  const base = emptyReply(template.rcode, 'template', `a template of the Corefile for ${zone}`)
  if (template.rcode === 'SERVFAIL') return base
  const doubts: string[] = []
  const make = (lines: readonly string[]): readonly DnsRecord[] =>
    lines.flatMap((line) => {
      const text = fillTemplate(line, question, { zone, match })
      const record = text === undefined ? undefined : parseRecord(text)
      if (record === undefined) doubts.push(`the template "${line}" makes a record that Portolan cannot read`)
      return record === undefined ? [] : [record]
    })
  const reply: Reply = {
    ...base,
    answers: make(template.answer),
    authority: make(template.authority),
    additional: make(template.additional),
    isAuthoritative: true,
  }
  return doubts.reduce(withDoubt, followAlias(question, reply, lookUp))
}

/** A CNAME is answered together with what its target has. */
function followAlias(question: Question, reply: Reply, lookUp: Handler): Reply {
  const alias = reply.answers.find((record) => record.type === 'CNAME')
  if (alias?.type !== 'CNAME' || (question.type !== 'A' && question.type !== 'AAAA')) return reply
  const found = lookUp({ ...question, name: fqdn(alias.target) })
  return {
    ...reply,
    answers: [...reply.answers, ...found.answers],
    ...(found.forwarded !== undefined && { forwarded: found.forwarded }),
    ...(found.unsure !== undefined && { unsure: found.unsure }),
  }
}

/** The fields that templates of DNS records use; undefined when one asks for more. */
function fillTemplate(
  line: string,
  { name, type, client }: Question,
  { zone, match }: Omit<Filling, 'lookUp'>,
): string | undefined {
  let isUnderstood = true
  const filled = line.replaceAll(/\{\{-?\s*(.*?)\s*-?\}\}/g, (_, expression: string) => {
    const value = fieldOf(expression)
    if (value === undefined) isUnderstood = false
    return value ?? ''
  })
  return isUnderstood ? filled : undefined

  function fieldOf(expression: string): string | undefined {
    const fields: Readonly<Record<string, string | undefined>> = {
      '.Name': foldName(name),
      '.Question.Name': name,
      '.Zone': zone,
      '.Class': 'IN',
      '.Type': type,
      '.Remote': client?.address,
    }
    if (expression in fields) return fields[expression]
    const group = /^\.Group\.(\w+)$/.exec(expression)?.[1] ?? /^index \.Group "(\w+)"$/.exec(expression)?.[1]
    if (group !== undefined) return match.groups?.[group] ?? match[Number(group)]
    const index = /^index \.Match (\d+)$/.exec(expression)?.[1]
    return index === undefined ? undefined : match[Number(index)]
  }
}
