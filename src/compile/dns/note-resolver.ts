/** What of a pod's resolver goes wrong without a word: lines that are skipped, and nameservers that do not know the cluster. */
import type { Finding } from '#base/finding'
import { listOf } from '#base/text'
import { dnsFinding } from './findings'
import type { Asks, ClusterResolution } from './resolve-in-cluster'
import type { ResolverSettings } from './resolver-settings'

export function noteResolver({ settings, asks, lookup }: ClusterResolution): readonly Finding[] {
  const findings: Finding[] = []
  if (settings.isSearchIgnored) {
    const length = `search ${lookup.conf.searches.join(' ')}`.length
    const message = `the search line has ${length} characters, and musl ignores one of 255 or more: names are asked as they are typed`
    findings.push(dnsFinding('dns.search-line-ignored', { message, hint: 'shorten the list, or use whole names' }))
  }
  if (asks === 'outside') {
    const { nameservers } = lookup.conf
    const asked = nameservers.length === 0 ? 'its node’s own nameservers' : listOf(nameservers)
    const message = `the pod asks ${asked}, not the cluster’s DNS, so it knows no cluster names`
    findings.push(
      dnsFinding('dns.not-cluster-dns', {
        message,
        hint: 'dnsPolicy ClusterFirst, or ClusterFirstWithHostNet on the host’s network, asks the cluster',
      }),
    )
  }
  if (asks === 'cluster-first' || asks === 'outside-first') {
    const message = `not all nameservers are the cluster’s DNS (${listOf(settings.nameservers)}): ${tellOrder(settings, asks)}`
    findings.push(dnsFinding('dns.mixed-nameservers', { message }))
  }
  return findings
}

function tellOrder({ libc, nameservers }: ResolverSettings, asks: Asks): string {
  if (libc === 'musl') return 'musl asks all at once and takes the first reply, whosever it is'
  return asks === 'cluster-first'
    ? 'glibc asks the next only when one fails; the answers here are the cluster’s'
    : `glibc asks ${nameservers[0]} first, which knows no cluster names, and the next only when that fails; the answers here are those of the first`
}
