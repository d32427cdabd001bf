/** What holds of a connection as a whole under Cilium: replies, live connections, and which port policies see. */
import type { CiliumSettings } from '#compile/policy/cilium-options'
import { asksPolicy, type CiliumTracking } from './cilium-conntrack'
import type { PartyClass } from './party'
import type { LanePoint } from './semantics'

type NoteContext = { readonly at: LanePoint; readonly settings: CiliumSettings }

export function notesOf(source: PartyClass, target: PartyClass, { settings }: NoteContext): readonly string[] {
  const judged: readonly CiliumTracking[] = ['NEW', 'ESTABLISHED', 'REPLY', 'RELATED']
  const free = judged.filter((tracking) => !asksPolicy(tracking)).map((tracking) => tracking.toLowerCase())
  const hasHost = source.kind === 'node' || target.kind === 'node'
  return [
    `packets that connection tracking calls ${free.join(' or ')} pass whatever policies say; every other packet is judged, so that a change of policy cuts connections that stand`,
    'policies see the port of the backend: through a Service, that is its targetPort',
    ...(hasHost && !settings.hasHostFirewall
      ? ['host-networked pods are seen as host or remote-node, and no policy selects them']
      : []),
  ]
}
