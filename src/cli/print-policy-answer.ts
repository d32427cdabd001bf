/** Answers of `policy eval` as text: the verdict, then each direction with its reasons, rules, tiers and what would change it. */
import { printOrigin, printRef } from '#base/finding'
import { countOf, listOf, plainText } from '#base/text'
import type { DirectionAnswer, OtherPolicy, PolicyReason, RuleReport } from '#trace/policy/answer'
import { type AnswerGroup, groupAnswers, type RouteAnswer, summaryOf } from './policy-answers'

export type AnswerPrinting = {
  /** What was found out on the way to the question. */
  readonly notes: readonly string[]
  /** Every policy that does not apply, and every pair of pods. */
  readonly isWide: boolean
  readonly hasColour: boolean
}

const verdicts = { true: 'allowed', false: 'denied', null: 'unknown' } as const
const marks = { allowed: '✓', denied: '✗', unknown: '?' } as const
const colours = { allowed: 32, denied: 31, unknown: 33 } as const

type Verdict = keyof typeof marks

export function printAnswers(answers: readonly RouteAnswer[], printing: AnswerPrinting): string {
  const groups = groupAnswers(answers)
  const parts = groups.map((group) => printGroup(group, printing))
  const whole = groups.length === 1 ? [] : [`${printSummary(answers, groups)}\n`]
  const notes = [...printing.notes, ...new Set(answers.flatMap(({ answer }) => answer.notes))]
  const noted = notes.map((note) => `note: ${plainText(note)}\n`).join('')
  return [...whole, ...parts, noted].filter((part) => part !== '').join('\n')
}

function printSummary(answers: readonly RouteAnswer[], groups: readonly AnswerGroup[]): string {
  const counts = new Map<Verdict, number>()
  for (const answer of answers) counts.set(verdictOf(answer), (counts.get(verdictOf(answer)) ?? 0) + 1)
  const [[only] = []] = counts
  const pairs = countOf(answers.length, 'pair')
  if (counts.size === 1) return `${pairs} of pods, all ${only}, for ${countOf(groups.length, 'set')} of reasons`
  const shown = listOf([...counts].map(([verdict, count]) => `${count} ${verdict}`))
  return `${pairs} of pods differ: ${shown}; together ${verdicts[`${summaryOf(answers).allowed}`]}`
}

function verdictOf({ answer }: RouteAnswer): Verdict {
  return verdicts[`${answer.allowed}`]
}

function printGroup({ first, all }: AnswerGroup, printing: AnswerPrinting): string {
  const { route, answer } = first
  const paint = painter(printing)
  const verdict = verdictOf(first)
  const { protocol, port } = route.connection
  const asked = `${route.source.name} -> ${route.target.name} ${protocol}${port === undefined ? '' : ` ${port}`}`
  const shown = printing.isWide ? all.length : 3
  const others = all.slice(1, shown).map(({ route: { source, target } }) => `  and ${source.name} -> ${target.name}`)
  const left = all.length - 1 - others.length
  const lines = [
    `${paint(verdict, `${marks[verdict]} ${verdict}`)}  ${plainText(asked)}`,
    ...others.map(plainText),
    ...(left > 0 ? [`  and ${countOf(left, 'more pair')} alike (-o wide shows all)`] : []),
    ...printDirection(`egress from ${route.source.name}`, answer.egress, printing),
    ...printDirection(`ingress to ${route.target.name}`, answer.ingress, printing),
  ]
  return `${lines.join('\n')}\n`
}

type Paint = (verdict: Verdict, text: string) => string

function painter({ hasColour }: AnswerPrinting): Paint {
  return (verdict, text) => (hasColour ? `\u001b[${colours[verdict]}m${text}\u001b[0m` : text)
}

function printDirection(title: string, answer: DirectionAnswer, printing: AnswerPrinting): readonly string[] {
  const { decision, because, rules, tiers, others, changes } = answer
  const told = new Set(because.map(({ object, path }) => `${JSON.stringify(object)} ${path}`))
  const untold = rules.filter(({ object, path }) => !told.has(`${JSON.stringify(object)} ${path}`))
  return [
    '',
    `${painter(printing)(decision, marks[decision])} ${plainText(title)}: ${decision}`,
    ...labelled('because', because.map(printReason)),
    ...labelled('rules', untold.map(printRule)),
    ...labelled('tiers', tiers === '' ? [] : [tiers]),
    ...labelled('change', changes),
    ...labelled('others', printOthers(others, printing)),
  ]
}

function labelled(label: string, texts: readonly string[]): readonly string[] {
  return texts.map((text, at) => `    ${(at === 0 ? label : '').padEnd(8)} ${plainText(text)}`)
}

function printReason({ sentence, origin, path }: PolicyReason): string {
  const where = [path ?? '', origin === undefined ? '' : printOrigin(origin)].filter((part) => part !== '')
  return where.length === 0 ? sentence : `${sentence} (${where.join(', ')})`
}

function printRule({ sentence, origin, path, decides, isCertain }: RuleReport): string {
  const open = ', if it matches, which the input does not tell'
  const effect = decides ? '' : isCertain ? ', but what goes before it decides' : open
  return `${sentence}${effect} (${path}, ${printOrigin(origin)})`
}

/** Policies of other pods alone are many, and counted. */
const mostOthers = 5

function printOthers(others: readonly OtherPolicy[], { isWide }: AnswerPrinting): readonly string[] {
  const shown = isWide ? others : others.slice(0, mostOthers)
  const left = others.length - shown.length
  return [
    ...shown.map(({ object, why }) => `${printRef(object)}: ${why}`),
    ...(left === 0 ? [] : [`and ${countOf(left, 'more policy', 'more policies')} (-o wide shows all)`]),
  ]
}
