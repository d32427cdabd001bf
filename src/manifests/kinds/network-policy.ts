/** NetworkPolicy (networking.k8s.io/v1): read, defaulted and held to what the API server asks (networking/validation, 1.34). */
import { containsIp, type Prefix, printPrefix } from '#base/prefix'
import { describeValue } from '#manifests/text/raw-object'
import type { Meta } from '#model/meta'
import type {
  IpBlockPeer,
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
  NetworkPolicyRule,
  PolicyType,
  SelectorPeer,
} from '#model/network-policy'
import { policyTypes } from '#model/network-policy'
import type { LabelSelector } from '#model/selector'
import { type Fields, has, itemsAt, mapAt, mapsAt, pathOf } from './fields'
import { readPolicyPort } from './policy-port'
import { blockRangeAt } from './policy-range'
import { checkKnown, checkVersion, refuse, unlessRefused } from './policy-refusal'
import { readSelector } from './policy-selector'
import type { Writable } from './writable'

const everything: LabelSelector = { matchLabels: {}, matchExpressions: [] }

/** Undefined, with findings, for one that the API server refuses. */
export function parseNetworkPolicy(root: Fields, meta: Meta): NetworkPolicy | undefined {
  return unlessRefused(root, () => {
    checkVersion(root, ['networking.k8s.io/v1'])
    const spec = mapAt(root, 'spec')
    checkKnown(root, ['apiVersion', 'kind', 'metadata', 'spec', 'status'])
    checkKnown(spec, ['podSelector', 'policyTypes', 'ingress', 'egress'])
    const ingress = mapsAt(spec, 'ingress').map((rule) => parseRule(rule, 'from'))
    const egress = mapsAt(spec, 'egress').map((rule) => parseRule(rule, 'to'))
    const types = parseTypes(spec)
    return {
      meta,
      podSelector: selectorOf(spec, 'podSelector') ?? everything,
      policyTypes: types.length > 0 ? types : egress.length > 0 ? ['Ingress', 'Egress'] : ['Ingress'],
      hasPolicyTypes: types.length > 0,
      ingress,
      egress,
    }
  })
}

/** An empty list counts as none, and is filled in: pkg/apis/networking/v1/defaults.go. */
function parseTypes(spec: Fields): readonly PolicyType[] {
  const items = itemsAt(spec, 'policyTypes')
  const hint = `write ${policyTypes.join(' or ')}`
  if (items.length > 2) {
    refuse(spec, 'policyTypes', { problem: 'it has more than two policyTypes', hint })
    return []
  }
  return items.flatMap((item, at) => {
    const type = policyTypes.find((known) => known === item)
    if (type !== undefined) return [type]
    const problem = `${describeValue(item)} is no policyType`
    refuse(spec, `policyTypes[${at}]`, { problem, hint })
    return []
  })
}

function parseRule(rule: Fields, peersKey: 'from' | 'to'): NetworkPolicyRule {
  checkKnown(rule, [peersKey, 'ports'])
  return {
    path: pathOf(rule, ''),
    peers: mapsAt(rule, peersKey).flatMap((peer) => parsePeer(peer) ?? []),
    ports: mapsAt(rule, 'ports').flatMap((port) => parsePort(port) ?? []),
  }
}

function parsePeer(peer: Fields): NetworkPolicyPeer | undefined {
  checkKnown(peer, ['podSelector', 'namespaceSelector', 'ipBlock'])
  const hasSelectors = has(peer, 'podSelector') || has(peer, 'namespaceSelector')
  if (has(peer, 'ipBlock')) {
    if (hasSelectors) {
      refuse(peer, '', {
        problem: 'a peer has an ipBlock and selectors as well',
        hint: 'make two peers of it, which count each for itself',
      })
    }
    return parseIpBlock(peer, mapAt(peer, 'ipBlock'))
  }
  if (!hasSelectors) {
    const problem = 'a peer has neither podSelector nor namespaceSelector nor ipBlock'
    refuse(peer, '', { problem, hint: 'for every pod of every namespace write namespaceSelector: {}' })
    return undefined
  }
  const selectors: Writable<SelectorPeer> = { kind: 'selectors', path: pathOf(peer, '') }
  const namespaceSelector = selectorOf(peer, 'namespaceSelector')
  const podSelector = selectorOf(peer, 'podSelector')
  if (namespaceSelector !== undefined) selectors.namespaceSelector = namespaceSelector
  if (podSelector !== undefined) selectors.podSelector = podSelector
  return selectors
}

function parseIpBlock(peer: Fields, block: Fields): IpBlockPeer | undefined {
  checkKnown(block, ['cidr', 'except'])
  const cidr = blockRangeAt(block, 'cidr', block.values.cidr)
  if (cidr === undefined) return undefined
  const except = itemsAt(block, 'except').flatMap((item, at) => parseExcept(block, { cidr, item, at }) ?? [])
  return { kind: 'ipBlock', path: pathOf(peer, ''), cidr, except }
}

type Except = { readonly cidr: Prefix; readonly item: unknown; readonly at: number }

function parseExcept(block: Fields, { cidr, item, at }: Except): Prefix | undefined {
  const range = blockRangeAt(block, `except[${at}]`, item)
  if (range === undefined) return undefined
  if (containsIp(cidr, range.ip) && range.length > cidr.length) return range
  const problem = `the exception ${printPrefix(range)} is no part of ${printPrefix(cidr)} smaller than the whole`
  refuse(block, `except[${at}]`, { problem, hint: 'take a range inside it' })
  return undefined
}

function parsePort(entry: Fields): NetworkPolicyPort | undefined {
  checkKnown(entry, ['protocol', 'port', 'endPort'])
  const read = readPolicyPort(entry)
  return read === undefined ? undefined : { path: pathOf(entry, ''), ...read }
}

function selectorOf(fields: Fields, key: string): LabelSelector | undefined {
  const read = readSelector(fields, key)
  for (const { fields: at, key: field, problem, hint } of read?.problems ?? []) {
    refuse(at, field, { problem, hint })
  }
  return read?.selector
}
