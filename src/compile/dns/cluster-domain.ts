/** Which domain the kubelets are taken to have, and what differs from the zones that CoreDNS serves. */
import type { Finding, Parsed } from '#base/finding'
import { listOf } from '#base/text'
import { fqdn } from './domain-name'
import { dnsFinding } from './findings'

export const usualClusterDomain = 'cluster.local'

/** Without one given it is the first zone of the Corefile, else the usual one. `zones` are folded, with the closing dot. */
export function chooseClusterDomain(given: string | undefined, zones: readonly string[]): Parsed<string> {
  const [first] = zones
  const served = first === undefined || first === '.' ? undefined : first.slice(0, -1)
  const value = given?.replace(/\.$/, '') ?? served ?? usualClusterDomain
  return { value, findings: compareDomain(value, zones, given === undefined) }
}

function compareDomain(domain: string, zones: readonly string[], isAssumed: boolean): readonly Finding[] {
  if (zones.length === 0) return []
  if (isAssumed && domain !== usualClusterDomain) {
    const message = `the kubelets are taken to have the cluster domain ${domain}, as the Corefile serves it`
    return [dnsFinding('dns.cluster-domain-assumed', { message, hint: 'say --cluster-domain' })]
  }
  if (zones.includes(fqdn(domain.toLowerCase())) || zones.includes('.')) return []
  const message = `search lists end in ${domain}, but CoreDNS serves ${listOf(zones)}: names of Services do not resolve`
  return [dnsFinding('dns.cluster-domain-differs', { message })]
}
