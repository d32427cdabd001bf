/**
 * Reading CiliumNetworkPolicy and CiliumClusterwideNetworkPolicy. What the schema of the CRD refuses is told here and the
 * object is left out; what the agent alone refuses depends on its version and is checked where the policy is compiled.
 */
import { describeValue } from '#manifests/text/raw-object'
import {
  type AuthenticationMode,
  type CidrRule,
  type CiliumElement,
  type CiliumPolicy,
  type CiliumSection,
  type CiliumSpec,
  type CiliumText,
  ciliumEntities,
  ciliumSections,
  type ServiceRef,
} from '#model/cilium-policy'
import type { Meta } from '#model/meta'
import {
  ciliumFlagAt,
  ciliumLabelSelectorAt,
  ciliumMapAt,
  ciliumMapsAt,
  ciliumSelectorAt,
  ciliumSelectorsAt,
  ciliumTextAt,
  ciliumTextsAt,
  ciliumWordAt,
  isRefusedSince,
  refuse,
  tellUnknown,
} from './cilium-fields'
import { fqdnOf, icmpsAt, toPortsAt } from './cilium-ports'
import { type Fields, has, pathOf, report } from './fields'
import type { Writable } from './writable'

/** Undefined for a policy that no cluster holds. */
export function parseCiliumPolicy(root: Fields, meta: Meta): CiliumPolicy | undefined {
  const before = root.reading.findings.length
  checkVersion(root, ['cilium.io/v2'])
  tellUnknown(root, ['apiVersion', 'kind', 'metadata', 'spec', 'specs', 'status'])
  const isClusterwide = meta.kind === 'CiliumClusterwideNetworkPolicy'
  const single = ciliumMapAt(root, 'spec')
  const several = ciliumMapsAt(root, 'specs')
  const specs = [...(single === undefined ? [] : [single]), ...(several ?? [])].map(specOf)
  if (specs.length === 0) tellNoSpec(root)
  return isRefusedSince(root, before) ? undefined : { meta, isClusterwide, specs }
}

export function checkVersion(root: Fields, versions: readonly string[]): void {
  const { apiVersion } = root.values
  if (typeof apiVersion !== 'string' || apiVersion === '' || versions.includes(apiVersion)) return
  refuse(root, 'apiVersion', `there is no version ${apiVersion} of the kind`, `write ${versions[0]}`)
}

function tellNoSpec(root: Fields): void {
  const message = 'the API server takes this object, but the agent refuses it: it has neither spec nor specs'
  report(root, 'spec', { code: 'policy.not-enforced', message, hint: 'write a spec' })
}

const specKeys = [
  'endpointSelector',
  'nodeSelector',
  ...ciliumSections,
  'enableDefaultDeny',
  'labels',
  'description',
  'log',
]

function specOf(fields: Fields): CiliumSpec {
  tellUnknown(fields, specKeys)
  const endpointSelector = ciliumSelectorAt(fields, 'endpointSelector')
  const nodeSelector = ciliumSelectorAt(fields, 'nodeSelector')
  if (has(fields, 'endpointSelector') === has(fields, 'nodeSelector')) {
    refuse(fields, '', 'exactly one of endpointSelector and nodeSelector is wanted')
  }
  const sections: Partial<Record<CiliumSection, readonly CiliumElement[]>> = {}
  for (const section of ciliumSections) {
    const elements = ciliumMapsAt(fields, section)?.map((entry) => elementOf(entry, section))
    if (elements !== undefined) sections[section] = elements
  }
  if (!ciliumSections.some((section) => has(fields, section))) {
    refuse(fields, '', `it has none of ${ciliumSections.join(', ')}`)
  }
  return {
    path: pathOf(fields, ''),
    ...(endpointSelector !== undefined && { endpointSelector }),
    ...(nodeSelector !== undefined && { nodeSelector }),
    sections,
    enableDefaultDeny: defaultDenyAt(fields),
  }
}

function defaultDenyAt(fields: Fields): CiliumSpec['enableDefaultDeny'] {
  const entry = ciliumMapAt(fields, 'enableDefaultDeny')
  if (entry === undefined) return {}
  tellUnknown(entry, ['ingress', 'egress'])
  const ingress = ciliumFlagAt(entry, 'ingress')
  const egress = ciliumFlagAt(entry, 'egress')
  return { ...(ingress !== undefined && { ingress }), ...(egress !== undefined && { egress }) }
}

const commonKeys = ['Endpoints', 'Requires', 'CIDR', 'CIDRSet', 'Entities', 'Nodes', 'Groups']

function elementOf(fields: Fields, section: CiliumSection): CiliumElement {
  const isDeny = section.endsWith('Deny')
  const isEgress = section.startsWith('egress')
  const side = isEgress ? 'to' : 'from'
  tellUnknown(fields, [
    ...commonKeys.map((key) => `${side}${key}`),
    ...(isEgress ? ['toServices'] : []),
    ...(isEgress && !isDeny ? ['toFQDNs'] : []),
    'toPorts',
    'icmps',
    ...(isDeny ? [] : ['authentication']),
  ])
  const element: Writable<CiliumElement> = { path: pathOf(fields, '') }
  fillPeers(fields, side, element)
  if (isEgress) fillDestinations(fields, isDeny, element)
  const toPorts = toPortsAt(fields, isDeny)
  const icmps = icmpsAt(fields)
  const authentication = isDeny ? undefined : authenticationAt(fields)
  if (toPorts !== undefined) element.toPorts = toPorts
  if (icmps !== undefined) element.icmps = icmps
  if (authentication !== undefined) element.authentication = authentication
  return element
}

function fillPeers(fields: Fields, side: 'from' | 'to', element: Writable<CiliumElement>): void {
  const endpoints = ciliumSelectorsAt(fields, `${side}Endpoints`)
  const requires = ciliumSelectorsAt(fields, `${side}Requires`)
  const cidrs = ciliumTextsAt(fields, `${side}CIDR`)
  const cidrSets = ciliumMapsAt(fields, `${side}CIDRSet`)?.map(cidrRule)
  const entities = entitiesAt(fields, `${side}Entities`)
  const nodes = ciliumSelectorsAt(fields, `${side}Nodes`)
  const groups = ciliumMapsAt(fields, `${side}Groups`)?.map(groupOf)
  if (endpoints !== undefined) element.endpoints = endpoints
  if (requires !== undefined) element.requires = requires
  if (cidrs !== undefined) element.cidrs = cidrs
  if (cidrSets !== undefined) element.cidrSets = cidrSets
  if (entities !== undefined) element.entities = entities
  if (nodes !== undefined) element.nodes = nodes
  if (groups !== undefined) element.groups = groups
}

function fillDestinations(fields: Fields, isDeny: boolean, element: Writable<CiliumElement>): void {
  const services = ciliumMapsAt(fields, 'toServices')?.map(serviceOf)
  const fqdns = isDeny ? undefined : ciliumMapsAt(fields, 'toFQDNs')?.map(fqdnOf)
  if (services !== undefined) element.services = services
  if (fqdns !== undefined) element.fqdns = fqdns
}

function authenticationAt(fields: Fields): AuthenticationMode | undefined {
  const entry = ciliumMapAt(fields, 'authentication')
  if (entry === undefined) return undefined
  tellUnknown(entry, ['mode'])
  if (!has(entry, 'mode')) refuse(entry, 'mode', 'an authentication without mode')
  return ciliumWordAt(entry, 'mode', ['disabled', 'required', 'test-always-fail'] as const)
}

function entitiesAt(fields: Fields, key: string): readonly CiliumText[] | undefined {
  const entities = ciliumTextsAt(fields, key)
  for (const [index, { text }] of (entities ?? []).entries()) {
    if ((ciliumEntities as readonly string[]).includes(text)) continue
    refuse(fields, `${key}[${index}]`, `"${text}" is none of ${ciliumEntities.join(', ')}`)
  }
  return entities
}

const groupName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

/** The schema wants exactly one of the three; what the texts hold is the agent's to check. */
function cidrRule(fields: Fields): CidrRule {
  tellUnknown(fields, ['cidr', 'cidrGroupRef', 'cidrGroupSelector', 'except'])
  const kinds = ['cidr', 'cidrGroupRef', 'cidrGroupSelector'].filter((key) => has(fields, key))
  if (kinds.length !== 1) {
    const found = kinds.length === 0 ? 'none is there' : `${kinds.join(' and ')} are there`
    refuse(fields, '', `exactly one of cidr, cidrGroupRef and cidrGroupSelector is wanted, and ${found}`)
  }
  const rule: Writable<CidrRule> = { path: pathOf(fields, ''), except: ciliumTextsAt(fields, 'except') ?? [] }
  const cidr = ciliumTextAt(fields, 'cidr')
  const groupRef = ciliumTextAt(fields, 'cidrGroupRef')
  const groupSelector = ciliumLabelSelectorAt(fields, 'cidrGroupSelector')
  if (groupRef !== undefined && (groupRef.length > 253 || !groupName.test(groupRef))) {
    refuse(fields, 'cidrGroupRef', `"${groupRef}" is no name of an object`)
  }
  if (cidr !== undefined) rule.cidr = cidr
  if (groupRef !== undefined) rule.groupRef = groupRef
  if (groupSelector !== undefined) rule.groupSelector = groupSelector
  return rule
}

function serviceOf(fields: Fields): ServiceRef {
  tellUnknown(fields, ['k8sService', 'k8sServiceSelector'])
  const byName = ciliumMapAt(fields, 'k8sService')
  const bySelector = ciliumMapAt(fields, 'k8sServiceSelector')
  const service: Writable<ServiceRef> = { path: pathOf(fields, '') }
  const at = byName ?? bySelector
  if (at !== undefined) {
    tellUnknown(at, byName === undefined ? ['selector', 'namespace'] : ['serviceName', 'namespace'])
    const namespace = ciliumTextAt(at, 'namespace')
    if (namespace !== undefined && namespace !== '') service.namespace = namespace
  }
  const name = byName === undefined ? undefined : ciliumTextAt(byName, 'serviceName')
  const selector = bySelector === undefined ? undefined : ciliumLabelSelectorAt(bySelector, 'selector')
  if (bySelector !== undefined && !has(bySelector, 'selector'))
    refuse(bySelector, 'selector', 'a Service selector is wanted')
  if (name !== undefined) service.name = name
  if (selector !== undefined) service.selector = selector
  return service
}

function groupOf(fields: Fields): CiliumText {
  tellUnknown(fields, ['aws'])
  return { path: pathOf(fields, ''), text: `AWS security groups ${describeValue(fields.values.aws ?? {})}` }
}
