/**
 * What the agent refuses in policies that the API server took: such a policy stands in the cluster without effect. Mirrors
 * pkg/policy/api/rule_validation.go, Cilium 1.16 to 1.19; the first fault is told, and one fault refuses the whole object.
 */
import { parseIp } from '#base/ip'
import { containsIp, parsePrefix } from '#base/prefix'
import { isEntity } from '#compile/identities/entities'
import { splitKey } from '#compile/identities/label'
import type {
  CidrRule,
  CiliumElement,
  CiliumPolicy,
  CiliumSection,
  CiliumSelector,
  CiliumSpec,
} from '#model/cilium-policy'
import { ciliumSections } from '#model/cilium-policy'
import { isAtLeast } from '#model/cilium-version'
import type { LabelSelector } from '#model/selector'
import { type AgentFault, firstFault, type Place } from './cilium-fault'
import type { CiliumSettings } from './cilium-options'
import { portsFault } from './cilium-port-checks'

export function faultOf(policy: CiliumPolicy, settings: CiliumSettings): AgentFault | undefined {
  for (const spec of policy.specs) {
    const fault = specFault(spec, policy.isClusterwide, settings)
    if (fault !== undefined) return fault
  }
  return undefined
}

function specFault(spec: CiliumSpec, isClusterwide: boolean, settings: CiliumSettings): AgentFault | undefined {
  const { path, endpointSelector, nodeSelector, sections } = spec
  const isEmpty = ciliumSections.every((section) => (sections[section] ?? []).length === 0)
  if (isEmpty && isAtLeast(settings.version, '1.17')) {
    const why = 'from 1.17 on a rule needs an element in one of its sections'
    return { path, why, hint: `to deny everything write ${path}.ingress: [{}]` }
  }
  if (nodeSelector !== undefined && !isClusterwide) {
    const why = 'nodeSelector belongs to CiliumClusterwideNetworkPolicy'
    return { path: nodeSelector.path, why, hint: 'write endpointSelector, or a clusterwide policy' }
  }
  const subject = firstFault([endpointSelector, nodeSelector], (one) => one && selectorFault(one))
  if (subject !== undefined) return subject
  for (const section of ciliumSections) {
    const place: Place = { section, isHost: nodeSelector !== undefined, settings }
    const fault = firstFault(sections[section] ?? [], (element) => elementFault(element, place))
    if (fault !== undefined) return fault
  }
  return undefined
}

function elementFault(element: CiliumElement, place: Place): AgentFault | undefined {
  const { settings } = place
  const { path, icmps = [], toPorts = [], nodes = [], requires = [], services = [] } = element
  const kinds = peerKinds(element, place.section)
  if (kinds.length > 1) {
    return { path, why: `${kinds.join(' and ')} in one element is not supported`, hint: 'write one element for each' }
  }
  if (requires.length > 0 && isAtLeast(settings.version, '1.19')) {
    return { path, why: 'fromRequires and toRequires are gone from 1.19 on, and its API server refuses them' }
  }
  if (services.length > 0 && toPorts.length > 0 && !isAtLeast(settings.version, '1.17')) {
    return { path, why: 'up to 1.16 toServices cannot stand beside toPorts' }
  }
  if (nodes.length > 0 && !settings.hasNodeLabels) {
    const why = 'fromNodes and toNodes work only with enable-node-selector-labels'
    return { path, why, hint: 'set enable-node-selector-labels in cilium-config' }
  }
  if (icmps.length > 0 && toPorts.length > 0) {
    return { path, why: 'icmps cannot stand beside toPorts', hint: 'write one element for each' }
  }
  if (icmps.length > 0 && !settings.hasIcmpRules) return { path, why: 'icmps work only with enable-icmp-rules' }
  return (
    firstFault([...(element.endpoints ?? []), ...requires, ...nodes], selectorFault) ??
    firstFault(toPorts, (rule) => portsFault(rule, place)) ??
    firstFault(element.cidrs ?? [], ({ path: at, text }) => cidrFault(at, text)) ??
    firstFault(element.cidrSets ?? [], (rule) => cidrRuleFault(rule, settings)) ??
    firstFault(element.entities ?? [], (entity) =>
      isEntity(entity.text) ? undefined : { path: entity.path, why: `there is no entity ${entity.text}` },
    )
  )
}

/** Empty lists do not count. */
function peerKinds(element: CiliumElement, section: CiliumSection): readonly string[] {
  const side = section.startsWith('egress') ? 'to' : 'from'
  const members = {
    Endpoints: element.endpoints,
    CIDR: element.cidrs,
    CIDRSet: element.cidrSets,
    Entities: element.entities,
    Nodes: element.nodes,
    Groups: element.groups,
    Services: element.services,
    FQDNs: element.fqdns,
  }
  return Object.entries(members).flatMap(([name, list]) =>
    list === undefined || list.length === 0 ? [] : [side + name],
  )
}

const nameOfKey = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$/
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

function selectorFault({ path, selector }: CiliumSelector): AgentFault | undefined {
  return labelSelectorFault(path, selector)
}

function labelSelectorFault(path: string, { matchLabels, matchExpressions }: LabelSelector): AgentFault | undefined {
  const badKey = [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)].find(
    (key) => !isLabelKey(key),
  )
  if (badKey !== undefined) return { path, why: `"${badKey}" is no key of a label` }
  for (const [index, { operator, values }] of matchExpressions.entries()) {
    const at = `${path}.matchExpressions[${index}]`
    const wantsValues = operator === 'In' || operator === 'NotIn'
    if (wantsValues && values.length === 0) return { path: at, why: `${operator} wants values` }
    if (!wantsValues && values.length > 0) return { path: at, why: `${operator} takes no values` }
    const bad = values.find((value) => value !== '' && (value.length > 63 || !nameOfKey.test(value)))
    if (bad !== undefined) return { path: at, why: `"${bad}" is no value of a label` }
  }
  return undefined
}

function isLabelKey(text: string): boolean {
  const { key } = splitKey(text, 'any')
  const slash = key.indexOf('/')
  const name = key.slice(slash + 1)
  if (name.length > 63 || !nameOfKey.test(name)) return false
  return slash < 0 || (slash <= 253 && subdomain.test(key.slice(0, slash)))
}

function cidrFault(path: string, text: string): AgentFault | undefined {
  if (parsePrefix(text) !== undefined || parseIp(text) !== undefined) return undefined
  return { path, why: `"${text}" is neither a range nor an address` }
}

/** Here a range needs its length. */
function cidrRuleFault(rule: CidrRule, settings: CiliumSettings): AgentFault | undefined {
  const { path, cidr, groupSelector } = rule
  if (groupSelector !== undefined && !isAtLeast(settings.version, '1.17')) {
    return { path, why: 'up to 1.16 there is no cidrGroupSelector' }
  }
  if (groupSelector !== undefined) return labelSelectorFault(`${path}.cidrGroupSelector`, groupSelector)
  if (cidr === undefined) return undefined
  const outer = parsePrefix(cidr)?.prefix
  if (outer === undefined)
    return { path: `${path}.cidr`, why: `"${cidr}" is no range: it wants an address, / and a length` }
  return firstFault(rule.except, ({ path: at, text }) => {
    const inner = parsePrefix(text)?.prefix
    if (inner === undefined) return { path: at, why: `"${text}" is no range: it wants an address, / and a length` }
    if (containsIp(outer, inner.ip) && inner.length >= outer.length) return undefined
    return { path: at, why: `${text} does not lie in ${cidr}`, hint: 'write an except that is part of its cidr' }
  })
}
