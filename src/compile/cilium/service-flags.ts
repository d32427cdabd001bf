/** Flags of a service's row, and their text. Mirrors pkg/loadbalancer, Cilium 1.16 to 1.19. */

export type FrontendType = 'ClusterIP' | 'NodePort' | 'ExternalIPs' | 'LoadBalancer' | 'HostPort' | 'LocalRedirect'

/** The low byte is `flags`, the high one `flags2`. */
export const serviceFlags = {
  externalIps: 1 << 0,
  nodePort: 1 << 1,
  externalLocal: 1 << 2,
  hostPort: 1 << 3,
  affinity: 1 << 4,
  loadBalancer: 1 << 5,
  routable: 1 << 6,
  sourceRange: 1 << 7,
  localRedirect: 1 << 8,
  nat46: 1 << 9,
  l7: 1 << 10,
  loopback: 1 << 11,
  internalLocal: 1 << 12,
  twoScopes: 1 << 13,
  /** Of a slot that its backend is quarantined, of a master that the source ranges deny. */
  quarantined: 1 << 14,
  dsr: 1 << 15,
} as const

const ofType: Readonly<Record<FrontendType, number>> = {
  ClusterIP: 0,
  NodePort: serviceFlags.nodePort,
  ExternalIPs: serviceFlags.externalIps,
  LoadBalancer: serviceFlags.loadBalancer,
  HostPort: serviceFlags.hostPort,
  LocalRedirect: serviceFlags.localRedirect,
}

export type FlagFacts = {
  readonly type: FrontendType
  readonly isExternalLocal: boolean
  readonly isInternalLocal: boolean
  readonly hasAffinity: boolean
  readonly isRoutable: boolean
  readonly hasSourceRanges: boolean
  readonly deniesSources: boolean
}

export function flagsOfFrontend(facts: FlagFacts): number {
  const { type, isExternalLocal, isInternalLocal, hasAffinity, isRoutable, hasSourceRanges, deniesSources } = facts
  return (
    ofType[type] |
    (isExternalLocal ? serviceFlags.externalLocal : 0) |
    (isInternalLocal ? serviceFlags.internalLocal : 0) |
    (isExternalLocal !== isInternalLocal && type !== 'ClusterIP' ? serviceFlags.twoScopes : 0) |
    (hasAffinity ? serviceFlags.affinity : 0) |
    (isRoutable ? serviceFlags.routable : 0) |
    (hasSourceRanges ? serviceFlags.sourceRange : 0) |
    (hasSourceRanges && deniesSources ? serviceFlags.quarantined : 0)
  )
}

/** The type, then what is set in upstream's order, and what is not routable. */
export function printServiceFlags(flags: number): string {
  const has = (flag: number): boolean => (flags & flag) !== 0
  const type = typeOfFlags(flags)
  const ranges = has(serviceFlags.sourceRange)
  const denies = ranges && has(serviceFlags.quarantined)
  const words: readonly (string | false)[] = [
    type,
    has(serviceFlags.externalLocal) && 'Local',
    has(serviceFlags.internalLocal) && 'InternalLocal',
    has(serviceFlags.twoScopes) && 'two-scopes',
    has(serviceFlags.affinity) && 'sessionAffinity',
    !has(serviceFlags.routable) && 'non-routable',
    ranges && (denies ? 'check source-range deny' : 'check source-range'),
    has(serviceFlags.nat46) && '46x64',
    has(serviceFlags.l7) && 'l7-load-balancer',
    has(serviceFlags.loopback) && (type === 'HostPort' ? 'loopback' : 'delegate-if-local'),
    has(serviceFlags.quarantined) && !denies && 'quarantined',
    has(serviceFlags.dsr) && 'dsr',
  ]
  return words.filter((word) => word !== false).join(', ')
}

function typeOfFlags(flags: number): FrontendType {
  const types: readonly FrontendType[] = ['ExternalIPs', 'NodePort', 'LoadBalancer', 'HostPort', 'LocalRedirect']
  return types.find((type) => (flags & ofType[type]) !== 0) ?? 'ClusterIP'
}
