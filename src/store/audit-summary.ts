/** What the policies in audit mode have come to so far. */
import type { Instant } from '#flows/instant'
import { readAuditObjects } from './audit-objects'
import type { AuditSummary, Offender } from './audit-store'
import type { Session } from './engine'

const mostOffenders = 25

type CounterRow = {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly evaluated: number
  readonly allowed: number
  readonly would_deny: number
}

type SetRow = {
  readonly semantics: string
  readonly evaluated: number
  readonly allowed: number
  readonly would_deny: number
  readonly unknown: number
  readonly dropped: number
  readonly judged_at: Instant | null
}

type OffenderRow = {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly peer: string
  readonly flows: number
  readonly last_seen: Instant
}

export async function readAuditSummary(session: Session): Promise<AuditSummary> {
  const { generation, objects } = await readAuditObjects(session)
  const waiting = await session.query<{ count: number }>({ text: 'select count(*) as count from audit_queue' })
  const sets = await session.query<SetRow>({ text: 'select * from audit_sets order by semantics' })
  const counters = await session.query<CounterRow>({ text: 'select * from audit_counters' })
  const offenders = await session.query<OffenderRow>({
    text: `select * from (
        select *, row_number() over (partition by kind, namespace, name order by flows desc, peer) as place
        from audit_offenders
      ) ranked where place <= ${mostOffenders} order by kind, namespace, name, place`,
  })
  const countersOf = new Map(counters.rows.map((row) => [keyText(row), row]))
  return {
    generation,
    waiting: waiting.rows[0]?.count ?? 0,
    sets: sets.rows.map(({ would_deny, judged_at, ...rest }) => ({
      ...rest,
      wouldDeny: would_deny,
      judgedAt: judged_at,
    })),
    policies: objects
      .filter(({ semantics }) => semantics !== '')
      .map(({ manifest: _manifest, ...policy }) => {
        const counted = countersOf.get(keyText(policy))
        return {
          ...policy,
          evaluated: counted?.evaluated ?? 0,
          allowed: counted?.allowed ?? 0,
          wouldDeny: counted?.would_deny ?? 0,
          offenders: offenders.rows.filter((row) => keyText(row) === keyText(policy)).map(offenderOf),
        }
      }),
  }
}

function keyText(key: { readonly kind: string; readonly namespace: string; readonly name: string }): string {
  return `${key.kind} ${key.namespace}/${key.name}`
}

function offenderOf({ peer, flows, last_seen }: OffenderRow): Offender {
  return { peer, flows, lastSeen: last_seen }
}
