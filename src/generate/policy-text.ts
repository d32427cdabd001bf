/** A policy as text: YAML whose values js-yaml writes, with each comment before the rule that it speaks of. */
import { dump } from 'js-yaml'
import { plainText } from '#base/text'

export type RuleText = { readonly comments: readonly string[]; readonly rule: object }

export type PolicyText = {
  readonly header: readonly string[]
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: object
  /** All of the spec but the rules. */
  readonly spec: object
  readonly ingress?: readonly RuleText[]
  readonly egress?: readonly RuleText[]
}

export function printPolicy({ header, apiVersion, kind, metadata, spec, ingress, egress }: PolicyText): string {
  return [
    ...header.map((line) => commentLine(line, 0)),
    yaml({ apiVersion, kind, metadata }, 0),
    'spec:\n',
    yaml(spec, 2),
    ...printRules('ingress', ingress),
    ...printRules('egress', egress),
  ].join('')
}

function printRules(name: string, rules: readonly RuleText[] | undefined): readonly string[] {
  if (rules === undefined) return []
  return [
    `  ${name}:\n`,
    ...rules.flatMap(({ comments, rule }) => [...comments.map((line) => commentLine(line, 4)), yaml([rule], 4)]),
  ]
}

/** Names come from clusters: a line break in one would end the comment. */
function commentLine(text: string, indent: number): string {
  return `${' '.repeat(indent)}# ${plainText(text)}\n`
}

function yaml(value: object, indent: number): string {
  return dump(value, { lineWidth: -1, noRefs: true }).replaceAll(/^(?=.)/gm, ' '.repeat(indent))
}
