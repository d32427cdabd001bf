/** What every route and loop of a broker works with. */
import type { Store } from '#store/store'
import type { AuditSlots } from './audit-slots'
import type { Clock } from './clock'
import type { LiveFlows } from './live-flows'
import type { Logger } from './log'
import type { Metrics } from './metrics'
import type { Settings } from './settings'

export type Broker = {
  readonly store: Store
  readonly clock: Clock
  readonly settings: Settings
  readonly log: Logger
  readonly metrics: Metrics
  readonly live: LiveFlows
  readonly audits: AuditSlots
  readonly version: string
}
