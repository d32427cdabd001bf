/** A backend that was asked for and that no way leads to. */
import type { Finding } from '#base/finding'
import { listOf } from '#base/text'
import type { Walk } from '#model/walk'
import { journeyFinding } from './findings'

/** Of either datapath's walk: whether the backend that was asked for stood among those that it could go to. */
export function tellUnmetBackend({ request }: Walk, asked: string | undefined): readonly Finding[] {
  const met = request.targets.map(({ address }) => address)
  const isMet = met.includes(asked ?? '') || request.steps.some(({ packet }) => packet.destination === asked)
  if (asked === undefined || isMet) return []
  const instead = met.length === 0 ? 'no backend is chosen on this way' : `it leads to ${listOf(met)}`
  const hint = met.length === 0 ? 'leave --backend out' : 'name one of these'
  return [journeyFinding('path.backend-unmet', `the packet is not for ${asked} on any way: ${instead}`, hint)]
}
