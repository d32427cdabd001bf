/** One rule as text: headers, matches with their options, then the target. */
import type { Clause, HeaderKind, Option, Rule } from './rule'

/**
 * `given`: values are quoted where they must be, as kube-proxy writes its input.
 * `saved`: as iptables-save prints them, which quotes free text unless it is one plain word.
 */
export type Quoting = 'given' | 'saved'

const headerFlags: Readonly<Record<HeaderKind, string>> = {
  source: '-s',
  destination: '-d',
  'in-interface': '-i',
  'out-interface': '-o',
  protocol: '-p',
}

/** Matches that need `-p`; kube-proxy writes `-m tcp -p tcp -d ADDRESS --dport PORT`, the options behind the headers. */
const portMatches: ReadonlySet<string> = new Set(['tcp', 'udp', 'sctp', 'dccp', 'udplite'])

/** The rule without `-A CHAIN`, with a blank before every word. */
export function printRule({ clauses, action }: Rule, quoting: Quoting): string {
  let text = ''
  for (let at = 0; at < clauses.length; at++) {
    const clause = clauses[at]
    if (clause === undefined) continue
    if (clause.kind !== 'match') {
      text += printHeader(clause)
      continue
    }
    text += ` -m ${clause.name}`
    if (portMatches.has(clause.name)) {
      for (let next = clauses[at + 1]; next !== undefined && mayStandBeforePort(next); next = clauses[at + 1]) {
        text += printHeader(next)
        at++
      }
    }
    text += printOptions(clause.options, quoting)
  }
  if (action === undefined) return text
  return `${text} ${action.kind === 'jump' ? '-j' : '-g'} ${action.target}${printOptions(action.options, quoting)}`
}

type Header = Exclude<Clause, { readonly kind: 'match' }>

function mayStandBeforePort(clause: Clause): clause is Header {
  return clause.kind === 'protocol' || clause.kind === 'destination'
}

function printHeader(clause: Header): string {
  const bang = clause.not ? ' !' : ''
  return clause.kind === 'fragment' ? `${bang} -f` : `${bang} ${headerFlags[clause.kind]} ${clause.value}`
}

function printOptions(options: readonly Option[], quoting: Quoting): string {
  let text = ''
  for (const { flag, not, values } of options) {
    text += not ? ` ! ${flag}` : ` ${flag}`
    for (const value of values) text += quoting === 'saved' ? ` ${saveValue(flag, value)}` : ` ${quoteIfNeeded(value)}`
  }
  return text
}

/** Options whose value iptables takes as free text (xtables_save_string in libxtables/xtables.c, 1.8.9). */
const freeText: ReadonlySet<string> = new Set([
  '--comment',
  '--log-prefix',
  '--nflog-prefix',
  '--ulog-prefix',
  '--helper',
  '--path',
])

/** Options that are saved in quotes, whatever they hold. */
const alwaysQuoted: ReadonlySet<string> = new Set(['--string', '--hex-string', '--u32', '--bytecode'])

function saveValue(flag: string, value: string): string {
  if (alwaysQuoted.has(flag)) return quote(value)
  if (freeText.has(flag)) return isPlainWord(value) ? value : quote(value)
  /** libxt_nfacct.c writes a blank of its own before the name. */
  if (flag === '--nfacct-name') return ` ${isPlainWord(value) ? value : quote(value)}`
  return quoteIfNeeded(value)
}

function isPlainWord(value: string): boolean {
  return /^[\w-]+$/.test(value)
}

function quoteIfNeeded(value: string): string {
  return /^[-!]|[\s"'\\]|^$/.test(value) ? quote(value) : value
}

function quote(value: string): string {
  return `"${value.replace(/["\\']/g, '\\$&')}"`
}
