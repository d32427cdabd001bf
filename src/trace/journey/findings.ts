/** What a journey rests on that the input did not tell, and where flows that were recorded say otherwise. */
import type { Finding, FindingTable } from '#base/finding'
import { listOf } from '#base/text'
import type { Walk } from '#model/walk'

export const journeyFindings = {
  'path.assumed-masquerade': {
    severity: 'info',
    meaning:
      'A pod’s packet leaves the cluster, and that its source is translated there is assumed of the network plugin.',
  },
  'path.backend-unmet': {
    severity: 'warning',
    meaning: 'The backend that was asked for is none that the packet could go to; another one, or none, was followed.',
  },
  'path.node-without-object': {
    severity: 'warning',
    meaning: 'A packet passes a node that the input has no Node object of: its addresses are not known.',
  },
  'path.state-bad-line': {
    severity: 'warning',
    meaning: 'A line of the state that was given is no tracked connection; it is left out.',
  },
} as const satisfies FindingTable

export function journeyFinding(code: keyof typeof journeyFindings, message: string, hint: string): Finding {
  return { code, severity: journeyFindings[code].severity, message, hint }
}

/** Of either datapath's walk: whether the backend that was asked for stood among those that it could go to. */
export function tellUnmetBackend({ request }: Walk, asked: string | undefined): readonly Finding[] {
  const met = request.targets.map(({ address }) => address)
  const isMet = met.includes(asked ?? '') || request.steps.some(({ packet }) => packet.destination === asked)
  if (asked === undefined || isMet) return []
  const instead = met.length === 0 ? 'no backend is chosen on this way' : `it leads to ${listOf(met)}`
  const hint = met.length === 0 ? 'leave --backend out' : 'name one of these'
  return [journeyFinding('path.backend-unmet', `the packet is not for ${asked} on any way: ${instead}`, hint)]
}
