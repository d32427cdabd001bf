/** Lint: what is suspicious about the policies of a cluster, each a finding with its place and what to do about it. */
import type { Finding } from '#base/finding'
import { compareText } from '#base/text'
import type { PolicyWorld } from '#trace/policy/world'
import { lintContext } from './lint-context'
import { lintDns } from './lint-dns'
import { lintCilium, lintEffects } from './lint-effects'
import { lintIsolation } from './lint-isolation'
import { lintPorts } from './lint-ports'
import { lintRanges } from './lint-ranges'
import { lintSelectors } from './lint-selectors'
import { lintShadows } from './lint-shadows'

/** Sorted by object, then by the place in it. */
export function lintPolicies(world: PolicyWorld): readonly Finding[] {
  const context = lintContext(world)
  const { cluster } = world
  const findings = [
    ...lintSelectors(context),
    ...lintIsolation(cluster),
    ...lintPorts(context),
    ...lintDns(context),
    ...lintShadows(context),
    ...lintRanges(cluster),
    ...lintEffects(context),
    ...lintCilium(context),
  ]
  return findings.toSorted((a, b) => compareText(placeOf(a), placeOf(b)))
}

function placeOf({ object, path = '', code }: Finding): string {
  return [object?.namespace ?? '', object?.name ?? '', object?.kind ?? '', path, code].join('\n')
}
