/** A lookup as text for people: every question in order with its result and why, the answers, the cost, and how to lower it. */
import { countOf, listOf, printTable } from '#base/text'
import type { Attempt } from './attempt'
import { describeHeard } from './hear-cluster'
import { printRecord, printRecordData } from './record'
import { printResolvConf } from './resolv-conf'
import type { ClusterResolution } from './resolve-in-cluster'

export type Asker = { readonly who: string; readonly policy: string; readonly hints: readonly string[] }

export function printResolution(resolution: ClusterResolution, asker: Asker): string {
  const { lookup, answers, advice } = resolution
  const title = `${lookup.name}${lookup.type === undefined ? '' : ` ${lookup.type}`}, asked by ${asker.who} (${lookup.libc})`
  const parts = [
    `${title}\n`,
    `${headline(resolution)}\n`,
    resolution.attempts.length === 0 ? '' : printAttempts(resolution.attempts),
    section('perhaps', asker.hints),
    section('answers', answers.map(printRecord)),
    section(
      'cheaper',
      advice.map(({ sentence }) => sentence),
    ),
    section(`resolv.conf (${asker.policy})`, confLines(resolution)),
  ]
  return parts.filter((part) => part !== '').join('\n')
}

function confLines({ lookup, asks }: ClusterResolution): readonly string[] {
  const text = printResolvConf(lookup.conf).trimEnd()
  if (text !== '') return text.split('\n')
  return [asks === 'nobody' ? 'empty' : 'the node’s own, which the input does not hold']
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : `${title}\n${lines.map((line) => `  ${line}\n`).join('')}`
}

function headline(resolution: ClusterResolution): string {
  return `${labels[resolution.outcome]}  ${sentenceOf(resolution)}; ${costOf(resolution)}`
}

const labels = {
  resolved: 'RESOLVED',
  forwarded: 'FORWARDED',
  'not-found': 'NOT FOUND',
  failed: 'FAILED',
  unknown: 'UNKNOWN',
} as const satisfies Readonly<Record<ClusterResolution['outcome'], string>>

function sentenceOf(resolution: ClusterResolution): string {
  const { outcome, found = '', answers, unsure, lookup, attempts, hostsEntry } = resolution
  if (hostsEntry !== undefined) return `${lookup.name} is ${hostsEntry.address} in the pod’s /etc/hosts`
  const list = listOf([...new Set(answers.map(printRecordData))])
  const data = list.length > longestData ? countOf(answers.length, 'record') : list
  const verb = data === list ? 'is' : 'has'
  switch (outcome) {
    case 'resolved':
      return `${found} ${verb} ${data}`
    case 'forwarded': {
      const beyond = forwardedTypes(resolution)
      if (beyond.length > 0)
        return `${found} ${verb} ${data}; ${listOf(beyond)} is asked outside the cluster and counts as answered`
      return data === ''
        ? `${found} is asked outside the cluster and counts as answered`
        : `${found} ${verb} ${data}, which is asked outside the cluster`
    }
    case 'not-found':
      return explainNotFound(resolution)
    case 'failed':
      return `${lookup.libc} gives up: ${attempts.at(-1)?.because ?? 'the name cannot be asked for'}`
    case 'unknown':
      return `${listOf(unsure)}${found === '' ? '' : `; without that ${found} is ${data === '' ? 'answered' : data}`}`
    default:
      return outcome satisfies never
  }
}

/** Of a name that the cluster's DNS knows in part, the types that it does not. */
function forwardedTypes({ attempts, found }: ClusterResolution): readonly string[] {
  const own = attempts.filter(({ name }) => name === found)
  const isKnown = own.some(({ answers, isForwarded }) => answers.length > 0 && isForwarded !== true)
  return isKnown ? own.filter(({ isForwarded }) => isForwarded === true).map(({ type }) => type) : []
}

/** Of several names the one of a Service that is there tells most. */
function explainNotFound({ attempts, lookup }: ClusterResolution): string {
  const names = new Set(attempts.map(({ name }) => name))
  const telling = attempts.find(({ because }) => because.startsWith('Service ') || because.startsWith('endpoint '))
  const shown = names.size === 1 ? attempts[0] : telling
  if (shown === undefined) return `none of the ${names.size} names that ${lookup.libc} makes of ${lookup.name} exists`
  const { name, rcode, type, because } = shown
  return rcode === 'NOERROR' ? `${name} has no ${type} record: ${because}` : `${name} does not exist: ${because}`
}

/** The longest list of records that a sentence takes. */
const longestData = 72

function costOf({ queries, seconds, passes, answers }: ClusterResolution): string {
  const again = `: glibc looks up ${passes} times, as ${answers.length} addresses need a larger buffer`
  const questions = `${countOf(queries, 'question')}${passes === undefined ? '' : again}`
  return seconds === 0 ? questions : `${questions}, ${countOf(seconds, 'second')} of waiting`
}

function printAttempts(attempts: readonly Attempt[]): string {
  const isRepeated = attempts.some(({ sends }) => sends > 1)
  const header = ['NAME', 'TYPE', ...(isRepeated ? ['SENT'] : []), 'RESULT', 'WHY']
  const rows = attempts.map((attempt) => [
    attempt.name,
    attempt.type,
    ...(isRepeated ? [`${attempt.sends}×`] : []),
    describeHeard(attempt),
    attempt.because,
  ])
  return printTable(header, rows).replaceAll(/^(?=.)/gm, '  ')
}
