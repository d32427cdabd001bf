/** Answers about several pods at once: which are alike, and what they come to together. */
import type { DirectionAnswer, PolicyAnswer } from '#trace/policy/answer'
import type { Route } from './policy-routes'

export type RouteAnswer = { readonly route: Route; readonly answer: PolicyAnswer }

/** Answers with the same decisions for the same reasons, but for names. */
export type AnswerGroup = { readonly first: RouteAnswer; readonly all: readonly RouteAnswer[] }

export function groupAnswers(answers: readonly RouteAnswer[]): readonly AnswerGroup[] {
  const groups = new Map<string, RouteAnswer[]>()
  for (const one of answers) {
    const { answer, route } = one
    const key = JSON.stringify([keyOf(answer.egress), keyOf(answer.ingress), route.connection.port])
    const known = groups.get(key)
    if (known === undefined) groups.set(key, [one])
    else known.push(one)
  }
  return [...groups.values()].flatMap((all) => (all[0] === undefined ? [] : [{ first: all[0], all }]))
}

function keyOf({ decision, because, rules, tiers }: DirectionAnswer): unknown {
  const reasons = because.map(({ code, object, path }) => [code, object, path])
  return [decision, reasons, rules.map(({ object, path, decides }) => [object, path, decides]), tiers]
}

/** One that is denied makes all of them denied: some connection fails. Then what is unknown counts. */
export function summaryOf(answers: readonly RouteAnswer[]): PolicyAnswer {
  const all = answers.map(({ answer }) => answer)
  const worst = all.find(({ allowed }) => allowed === false) ?? all.find(({ allowed }) => allowed === null) ?? all[0]
  if (worst === undefined) throw new TypeError('there is no answer')
  return worst
}

type DirectionJson = Pick<DirectionAnswer, 'decision' | 'because'>

export type AnswerJson = {
  readonly allowed: boolean | null
  readonly ingress: DirectionJson
  readonly egress: DirectionJson
}

/** `pairs` is there where several pods differ. */
export function answersJson(answers: readonly RouteAnswer[]): AnswerJson & { readonly pairs?: readonly unknown[] } {
  const whole = jsonOf(summaryOf(answers))
  if (groupAnswers(answers).length === 1) return whole
  const pairs = answers.map(({ route, answer }) => ({
    source: route.source.name,
    target: route.target.name,
    ...jsonOf(answer),
  }))
  return { ...whole, pairs }
}

function jsonOf({ allowed, ingress, egress }: PolicyAnswer): AnswerJson {
  return { allowed, ingress: directionJson(ingress), egress: directionJson(egress) }
}

function directionJson({ decision, because }: DirectionAnswer): DirectionJson {
  return { decision, because }
}
