/** What connection tracking knows of a packet where a rule stands. */
import type { ConnectionState } from '#model/packet'
import type { Fields } from './path'
import type { View } from './view'

/**
 * The raw table comes before connection tracking (priority −300 to −200): its packets are of no connection yet, which
 * xt_conntrack calls INVALID. One that comes back in on `lo` has kept its connection.
 */
export function stateAt({ fields, table }: Pick<View, 'fields' | 'table'>): ConnectionState {
  return table === 'raw' && fields.state !== 'UNTRACKED' && !cameBack(fields) ? 'INVALID' : fields.state
}

export function hasConnection(at: Pick<View, 'fields' | 'table'>): boolean {
  const state = stateAt(at)
  return state !== 'UNTRACKED' && state !== 'INVALID'
}

/** The node sent it to itself, and it is on its way in. */
export function cameBack({ way, inInterface }: Fields): boolean {
  return way === 'process' && inInterface === 'lo'
}
