/** CiliumNetworkPolicy and CiliumClusterwideNetworkPolicy as rules. Mirrors pkg/policy and pkg/k8s/apis, Cilium 1.16 to 1.19. */
import { endpointSelector, type Requirement, wildcardSelector } from '#compile/identities/endpoint-selector'
import type { CiliumElement, CiliumPolicy, CiliumSection, CiliumSpec, FqdnSelector } from '#model/cilium-policy'
import { isAtLeast } from '#model/cilium-version'
import type { Cluster } from '#model/cluster'
import { refOf } from '#model/meta'
import type { CiliumSettings } from './cilium-options'
import { type PeerContext, peersOf } from './cilium-peers'
import { portGroups } from './cilium-ports'
import { type CiliumSubject, ownSubject } from './cilium-rule'
import { matchesInit, requiredSelector, type SelectorScope, subjectSelector } from './cilium-selectors'
import type { CompiledPolicy, Direction, PolicyRule, RuleAction } from './policy-rule'

/** One for each spec and each direction that it has elements for. */
export function compileCiliumPolicy(
  policy: CiliumPolicy,
  cluster: Cluster,
  settings: CiliumSettings,
): readonly CompiledPolicy[] {
  return policy.specs.flatMap((spec) =>
    (['ingress', 'egress'] as const).flatMap((direction) =>
      compileDirection({ policy, spec, cluster, settings }, direction),
    ),
  )
}

type SpecContext = {
  readonly policy: CiliumPolicy
  readonly spec: CiliumSpec
  readonly cluster: Cluster
  readonly settings: CiliumSettings
}

function compileDirection(context: SpecContext, direction: Direction): readonly CompiledPolicy[] {
  const { policy, spec, cluster, settings } = context
  const allows = spec.sections[direction] ?? []
  const denies = spec.sections[`${direction}Deny`] ?? []
  if (allows.length + denies.length === 0) return []
  const scope: SelectorScope = {
    namespace: policy.isClusterwide ? '' : policy.meta.namespace,
    version: settings.version,
    matchesInit: matchesInit(spec.endpointSelector?.selector),
  }
  const peers: PeerContext = { cluster, settings, scope }
  return [
    {
      source: { object: refOf(policy.meta), origin: policy.meta.origin, path: spec.path },
      tier: 'normal',
      priority: 0,
      direction,
      subject: ownSubject(`${spec.path}.${subjectKey(spec)}`, subjectIn(context, direction, scope)),
      isolates: isolates(spec, direction, settings),
      rules: [
        ...denies.flatMap((element) => rulesOf(element, 'deny', peers)),
        ...allows.flatMap((element) => rulesOf(element, 'allow', peers)),
      ],
    },
  ]
}

function subjectKey({ nodeSelector }: CiliumSpec): string {
  return nodeSelector === undefined ? 'endpointSelector' : 'nodeSelector'
}

function subjectIn({ spec, settings }: SpecContext, direction: Direction, scope: SelectorScope): CiliumSubject {
  const { endpointSelector: endpoints, nodeSelector: nodes, sections } = spec
  const selector =
    nodes !== undefined
      ? endpointSelector(nodes.selector)
      : endpoints === undefined
        ? wildcardSelector
        : subjectSelector(endpoints.selector, scope.namespace)
  const hasRequires = !isAtLeast(settings.version, '1.19')
  return {
    kind: nodes === undefined ? 'endpoints' : 'host',
    selector,
    requires: hasRequires ? requirementsOf(sections[direction] ?? [], scope) : [],
    requiresDeny: hasRequires ? requirementsOf(sections[`${direction}Deny` as CiliumSection] ?? [], scope) : [],
    seenNames: direction === 'egress' ? seenNames(sections.egress ?? []) : [],
  }
}

function requirementsOf(elements: readonly CiliumElement[], scope: SelectorScope): readonly Requirement[] {
  return elements.flatMap(({ requires = [] }) =>
    requires.flatMap(({ selector }) => requiredSelector(selector, scope).requirements),
  )
}

function seenNames(elements: readonly CiliumElement[]): readonly FqdnSelector[] {
  return elements.flatMap(({ toPorts = [] }) => toPorts.flatMap(({ rules }) => rules?.dns ?? []))
}

/** Without a word on it a direction with elements closes its subjects but for what is allowed. */
function isolates({ enableDefaultDeny }: CiliumSpec, direction: Direction, settings: CiliumSettings): boolean {
  return settings.hasDefaultDenySwitch ? (enableDefaultDeny[direction] ?? true) : true
}

function rulesOf(element: CiliumElement, action: RuleAction, context: PeerContext): readonly PolicyRule[] {
  const peers = peersOf(element, context)
  return portGroups(element).map(({ path, ports, consequences, detail }) => ({
    path,
    action,
    peers,
    ports,
    ...(consequences.length > 0 && { consequences }),
    detail,
  }))
}
