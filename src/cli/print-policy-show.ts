/** One attachment as its node has it: both directions with what they are to have, what is said of them and what they hold. */
import { dump } from 'js-yaml'
import { printTable } from '#base/text'
import type { Direction } from '#compile/traffic-policy/entry'
import type { FallbackReason } from '#compile/traffic-policy/reasons'

export type ShownRule = {
  /** Null where cluster and snapshot do not agree on it. */
  readonly name: string | null
  readonly index: number
  readonly action: string
  /** Null where the row cannot be read. */
  readonly hits: number | null
  readonly bytes: number | null
}

export type ShownSnapshot = {
  /** `namespace/name` of the cluster's policy of that UID; null where there is none. */
  readonly policy: string | null
  readonly uid: string
  readonly generation: number
  /** Of the cluster's policy now; null where there is none. */
  readonly clusterGeneration: number | null
  readonly publication: number
  readonly stateful: boolean
  readonly entries: number
  readonly rules: readonly ShownRule[]
}

export type ShownStatus = {
  readonly state: string
  readonly observedGeneration: number
  readonly since: string
  readonly heartbeat: string | null
  readonly message: string | null
}

export type ShownDirection = {
  readonly direction: Direction
  /** The policy that it is to have, or why it is to have none. */
  readonly wanted: string
  /** Null where the node has said nothing, as of edge links, which have no status. */
  readonly status: ShownStatus | null
  readonly snapshot: ShownSnapshot | null
  /** Why there is no snapshot to show. */
  readonly noSnapshot: string | null
  /** By reason; null where they cannot be read. */
  readonly fallbacks: Readonly<Record<string, number>> | null
}

export type ShownAttachment = {
  readonly kind: string
  readonly attachment: string
  readonly node: string
  readonly interface: string
  readonly vpc: string
  /** By which networks its packets get a path class; null where they cannot be read or it is of no VPC. */
  readonly pathPrefixes: string | null
  readonly mode: string
  /** Why the datapath was not read; null where it was. */
  readonly unread: string | null
  /** The binding or the service that chooses the policies, with its generation. */
  readonly chosenBy: string
  readonly directions: readonly ShownDirection[]
}

export function printPolicyShow(shown: readonly ShownAttachment[], output: 'text' | 'json' | 'yaml'): string {
  const [one, ...others] = shown
  const whole = others.length === 0 ? one : shown
  if (output === 'json') return `${JSON.stringify(whole, undefined, 2)}\n`
  if (output === 'yaml') return dump(whole, { noRefs: true, lineWidth: 120 })
  return shown.map(printAttachment).join('\n')
}

function printAttachment(shown: ShownAttachment): string {
  const head = printPairs(
    [
      ['attachment', `${shown.kind} ${shown.attachment}`],
      ['node', shown.node],
      ['interface', shown.interface === '' ? '-' : shown.interface],
      ['vpc', shown.vpc === '' ? '-' : shown.vpc],
      ...(shown.pathPrefixes === null ? [] : [['paths', shown.pathPrefixes] as const]),
      ['mode', shown.mode],
      ...(shown.unread === null ? [] : [['datapath', `not read: ${shown.unread}`] as const]),
      ['chosen by', shown.chosenBy],
    ],
    '',
  )
  return `${head}${shown.directions.map(printDirection).join('')}`
}

function printPairs(pairs: readonly (readonly [string, string])[], indent: string): string {
  const width = Math.max(...pairs.map(([key]) => key.length), 'attachment'.length)
  return pairs.map(([key, value]) => `${indent}${key.padEnd(width - indent.length)}  ${value}\n`).join('')
}

function printDirection({ direction, wanted, status, snapshot, noSnapshot, fallbacks }: ShownDirection): string {
  const lines = printPairs(
    [
      ['policy', wanted],
      ['status', status === null ? '-' : printStatus(status)],
      ['snapshot', snapshot === null ? (noSnapshot ?? '-') : printSnapshotLine(snapshot)],
    ],
    '  ',
  )
  const rules = snapshot === null || snapshot.rules.length === 0 ? '' : `\n${indented(printRules(snapshot.rules))}`
  return `\n${direction}\n${lines}${rules}${printFallbacks(fallbacks, snapshot === null)}`
}

function printStatus({ state, since, heartbeat, observedGeneration, message }: ShownStatus): string {
  const heard = heartbeat === null ? 'never heard of' : `heard of ${heartbeat}`
  const line = `${state} since ${since}, for generation ${observedGeneration}, ${heard}`
  return message === null ? line : `${line}: ${message}`
}

function printSnapshotLine({ policy, uid, generation, clusterGeneration, ...rest }: ShownSnapshot): string {
  const name = policy ?? `a policy that is not in the input (UID ${uid})`
  const behind = clusterGeneration === null || clusterGeneration === generation ? '' : ` of ${clusterGeneration}`
  const state = rest.stateful ? '' : ', stateless'
  return `${name}, generation ${generation}${behind}, publication ${rest.publication}, compiled entries ${rest.entries}${state}`
}

function printRules(rules: readonly ShownRule[]): string {
  const cells = rules.map(({ name, index, action, hits, bytes }) => [
    name === null ? `#${index}` : `${name} (#${index})`,
    action,
    hits === null ? 'unreadable' : String(hits),
    bytes === null ? 'unreadable' : String(bytes),
  ])
  return printTable(['RULE', 'ACTION', 'HITS', 'BYTES'], cells)
}

const passing: readonly string[] = ['established', 'icmp_error', 'link'] satisfies readonly FallbackReason[]

/** With nothing bound, that packets were denied for it is told also at zero. */
function printFallbacks(fallbacks: ShownDirection['fallbacks'], isUnbound: boolean): string {
  if (fallbacks === null) return ''
  const told = Object.entries(fallbacks).filter(
    ([reason, hits]) => hits > 0 || (isUnbound && reason === 'policy_unavailable'),
  )
  if (told.length === 0) return ''
  const rows = told.map(([reason, hits]) => [reason, passing.includes(reason) ? 'allow' : 'deny', String(hits)])
  return `\n${indented(printTable(['WITHOUT A RULE', 'VERDICT', 'PACKETS'], rows))}`
}

function indented(text: string): string {
  return text.replaceAll(/^(?=.)/gm, '  ')
}
