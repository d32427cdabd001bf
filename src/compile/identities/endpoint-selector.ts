/** Cilium's endpoint selectors: label selectors whose keys have a source. Mirrors pkg/policy/api/selector.go, Cilium 1.18. */
import { compareText } from '#base/text'
import type { Expression, LabelSelector } from '#model/selector'
import { anySource, type LabelSet, splitKey } from './label'

export type Requirement = {
  readonly source: string
  readonly key: string
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
  readonly values: readonly string[]
}

/** All requirements must hold; none at all is the wildcard. */
export type EndpointSelector = { readonly requirements: readonly Requirement[] }

export const wildcardSelector: EndpointSelector = { requirements: [] }

/** Keys of Kubernetes' own kinds are of the source `k8s` as they stand; Cilium's name a source, or mean any. */
export function endpointSelector(selector: LabelSelector, source: 'any' | 'k8s' = anySource): EndpointSelector {
  const labels = Object.entries(selector.matchLabels).map(([key, value]) => ({
    ...placeOf(key, source),
    operator: 'In' as const,
    values: [value],
  }))
  return { requirements: [...labels, ...selector.matchExpressions.flatMap((one) => requirementOf(one, source))] }
}

function placeOf(key: string, source: 'any' | 'k8s'): Pick<Requirement, 'source' | 'key'> {
  return source === anySource ? splitKey(key, source) : { source, key }
}

export function addRequirement(selector: EndpointSelector, ...added: readonly Requirement[]): EndpointSelector {
  return { requirements: [...selector.requirements, ...added] }
}

export function hasKey(
  selector: EndpointSelector,
  sources: readonly string[],
  matches: (key: string) => boolean,
): boolean {
  return selector.requirements.some(({ source, key }) => sources.includes(source) && matches(key))
}

export function isWildcard(selector: EndpointSelector): boolean {
  return selector.requirements.length === 0
}

export function selectsLabels({ requirements }: EndpointSelector, labels: LabelSet): boolean {
  for (const requirement of requirements) if (!holds(requirement, labels)) return false
  return true
}

export function printSelector({ requirements }: EndpointSelector): string {
  if (requirements.length === 0) return 'everything'
  return requirements.map(printRequirement).sort(compareText).join(', ')
}

function printRequirement({ source, key, operator, values }: Requirement): string {
  const name = source === anySource ? key : `${source}:${key}`
  if (operator === 'Exists') return name
  if (operator === 'DoesNotExist') return `!${name}`
  if (operator === 'In' && values.length === 1) return values[0] === '' ? name : `${name}=${values[0]}`
  return `${name} ${operator} (${values.join(', ')})`
}

/** Node affinity alone knows Gt and Lt: such an expression can select nothing. */
function requirementOf({ key, operator, values }: Expression, source: 'any' | 'k8s'): Requirement {
  const at = placeOf(key, source)
  if (operator === 'Gt' || operator === 'Lt') return { ...at, operator: 'In', values: [] }
  return { ...at, operator, values }
}

function holds({ source, key, operator, values }: Requirement, labels: LabelSet): boolean {
  const found = labels.byKey.get(key)?.find((label) => source === anySource || label.source === source)
  switch (operator) {
    case 'In':
      return found !== undefined && values.includes(found.value)
    case 'NotIn':
      return found === undefined || !values.includes(found.value)
    case 'Exists':
      return found !== undefined
    case 'DoesNotExist':
      return found === undefined
    default:
      return operator satisfies never
  }
}
