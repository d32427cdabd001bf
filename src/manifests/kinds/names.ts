/** Names as the API server checks them: how long they may be, and of which characters. */

type Rule = { readonly most: number; readonly hasDots: boolean }

/** Kinds that are not listed take a DNS subdomain of up to 253 characters. */
const rules: Readonly<Record<string, Rule>> = {
  Service: { most: 63, hasDots: false },
  Namespace: { most: 63, hasDots: false },
  Job: { most: 63, hasDots: true },
  CronJob: { most: 52, hasDots: true },
}

const subdomain: Rule = { most: 253, hasDots: true }

/** What no cluster can hold in a name and no rule or screen should meet: control characters, blanks, quotes, slashes. */
const impossible = /[\p{C}\p{Z}"'`/\\]/u

export function isImpossibleName(name: string): boolean {
  return impossible.test(name)
}

/** Why the API server would refuse the name of an object, or undefined when it would not. */
export function explainBadName(kind: string, name: string): string | undefined {
  return explain(name, rules[kind] ?? subdomain, kind)
}

/** Port names on containers and in targetPort: IANA service names. */
export function explainBadPortName(name: string): string | undefined {
  if (name.length > 15) return `"${shorten(name)}" has ${name.length} characters, where a port name takes at most 15`
  if (/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name) && /[a-z]/.test(name)) return undefined
  return `"${name}" is no port name: it takes lower-case letters, digits and single "-" between them, and one letter at least`
}

/** Names of Service and slice ports: DNS labels. */
export function explainBadLabel(name: string, noun: string): string | undefined {
  return explain(name, { most: 63, hasDots: false }, noun)
}

function explain(name: string, rule: Rule, noun: string): string | undefined {
  if (name.length > rule.most) {
    return `"${shorten(name)}" has ${name.length} characters, where the name of a ${noun} takes at most ${rule.most}`
  }
  for (let index = 0; index < name.length; index++) {
    const code = name.charCodeAt(index)
    const isAlphanumeric = (code >= 97 && code <= 122) || (code >= 48 && code <= 57)
    const isInside = index > 0 && index < name.length - 1
    if (isAlphanumeric || (isInside && (code === 45 || (rule.hasDots && code === 46)))) continue
    const marks = rule.hasDots ? '"-" and "."' : '"-"'
    return `"${name}" is no name for a ${noun}: it takes lower-case letters and digits, with ${marks} between them`
  }
  return undefined
}

function shorten(name: string): string {
  return name.length > 80 ? `${name.slice(0, 77)}…` : name
}
