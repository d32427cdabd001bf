/** Reads what watched policies would have done, newest first. */
import { Conditions } from './conditions'
import type { Session } from './engine'
import type { StoredVerdict, VerdictQuery } from './store'

type VerdictRow = {
  readonly id: number
  readonly policy_uid: string
  readonly policy_namespace: string
  readonly policy_name: string
  readonly direction: StoredVerdict['direction']
  readonly src_namespace: string | null
  readonly src_pod: string | null
  readonly dst_namespace: string | null
  readonly dst_pod: string | null
  readonly dst_port: number
  readonly protocol: string
  readonly reason: string | null
  readonly observed_micros: number
  readonly verdict: StoredVerdict['verdict']
}

export async function readVerdicts(
  session: Session,
  query: VerdictQuery,
  limit: number,
): Promise<readonly StoredVerdict[]> {
  const conditions = new Conditions()
  conditions.equal('policy_name', query.policyName)
  conditions.equal('policy_namespace', query.policyNamespace)
  conditions.equal('verdict', query.verdict)
  conditions.equal('direction', query.direction)
  const { rows } = await session.query<VerdictRow>({
    text: `select *, (extract(epoch from observed_at) * 1000000)::int8 as observed_micros from audit_verdicts
      ${conditions.where} order by observed_at desc, id desc limit ${Math.trunc(limit)}`,
    values: conditions.values,
  })
  return rows.map(readVerdict)
}

function readVerdict(row: VerdictRow): StoredVerdict {
  return {
    id: row.id,
    policyUid: row.policy_uid,
    policyNamespace: row.policy_namespace,
    policyName: row.policy_name,
    direction: row.direction,
    source: { namespace: row.src_namespace, pod: row.src_pod },
    destination: { namespace: row.dst_namespace, pod: row.dst_pod, port: row.dst_port },
    protocol: row.protocol,
    reason: row.reason,
    observedAt: row.observed_micros,
    verdict: row.verdict,
  }
}
