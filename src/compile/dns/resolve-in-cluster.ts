/** A pod's lookup from the name it types to the answer: its resolv.conf, its C library, and the DNS of its cluster. */
import { canonicalIp } from '#base/ip'
import { type Advice, adviseLookup } from './advise-lookup'
import { type Ask, type Attempt, countQueries, type Resolution } from './attempt'
import type { DnsServer } from './build-dns-server'
import { fqdn } from './domain-name'
import type { DnsSource } from './form-resolv-conf'
import { askBoth, askCluster, askNobody, askOutside } from './hear-cluster'
import { type HostsEntry, lookUpHosts } from './pod-hosts'
import type { Client, DnsRecord } from './record'
import { printResolvConf, type ResolvConf } from './resolv-conf'
import { resolveName } from './resolve-name'
import { type Libc, type ResolverSettings, readResolverSettings } from './resolver-settings'

export type ClusterLookup = {
  readonly name: string
  /** Absent: A and AAAA, as getaddrinfo asks. */
  readonly type?: string
  readonly libc: Libc
  readonly conf: ResolvConf
  readonly source: DnsSource
  readonly client?: Client
  readonly hosts: readonly HostsEntry[]
  /** Addresses under which the cluster's DNS is asked. */
  readonly clusterDns: readonly string[]
  readonly clusterDomain: string
  /** Whether a folded name is that of a Service, as NAME.NAMESPACE, or one below it. */
  readonly isService?: (name: string) => boolean
}

export type Outcome = 'resolved' | 'forwarded' | 'not-found' | 'failed' | 'unknown'

/** How the pod's nameservers stand to the cluster's DNS: of several, glibc hears the first as long as that says anything. */
export type Asks = 'cluster' | 'outside' | 'cluster-first' | 'outside-first' | 'nobody'

export type ClusterResolution = {
  readonly lookup: ClusterLookup
  readonly settings: ResolverSettings
  readonly outcome: Outcome
  readonly attempts: readonly Attempt[]
  readonly queries: number
  readonly answers: readonly DnsRecord[]
  readonly found?: string
  readonly seconds: number
  readonly passes?: number
  readonly unsure: readonly string[]
  readonly advice: readonly Advice[]
  readonly asks: Asks
  /** The line of /etc/hosts that answered without a question. */
  readonly hostsEntry?: HostsEntry
}

export function resolveInCluster(server: DnsServer, lookup: ClusterLookup): ClusterResolution {
  const settings = readResolverSettings(printResolvConf(lookup.conf), lookup.libc)
  const asks = whomItAsks(lookup, settings)
  const types = lookup.type === undefined ? ['A', 'AAAA'] : [lookup.type]
  const hostsEntry = lookUpHosts(lookup.hosts, lookup.name, types)
  const base = { lookup, settings, asks }
  if (hostsEntry !== undefined) return fromHosts(base, hostsEntry)
  const { name: typed, client, isService } = lookup
  const asking = { typed, ...(client !== undefined && { client }), ...(isService !== undefined && { isService }) }
  const zones = [...server.clusterZones, fqdn(lookup.clusterDomain)]
  const ask = chooseAsk(base, askCluster(server, asking), askOutside(zones, asking))
  const asked = { name: lookup.name, types }
  const resolution = resolveName(asked, settings, ask)
  const { attempts, found, seconds, passes } = resolution
  const answered = attempts.filter(({ name, isPositive }) => name === found && isPositive)
  const unsure = [...new Set(attempts.flatMap((attempt) => attempt.unsure ?? []))]
  return {
    ...base,
    outcome: unsure.length > 0 ? 'unknown' : outcomeOf(resolution, answered),
    attempts,
    queries: countQueries(attempts),
    answers: mergeAnswers(answered),
    seconds,
    unsure,
    advice: adviseLookup({ lookup: asked, settings, ask }, resolution),
    ...(found !== undefined && { found }),
    ...(passes !== undefined && { passes }),
  }
}

function chooseAsk({ asks, settings }: { asks: Asks; settings: ResolverSettings }, cluster: Ask, outside: Ask): Ask {
  switch (asks) {
    case 'cluster':
      return cluster
    case 'outside':
      return outside
    case 'nobody':
      return askNobody
    case 'cluster-first':
      return settings.libc === 'musl' ? askBoth(cluster, outside) : cluster
    case 'outside-first':
      return settings.libc === 'musl' ? askBoth(cluster, outside) : outside
    default:
      return asks satisfies never
  }
}

/** The cluster's policy leads to its DNS; other nameservers are compared with its addresses. */
function whomItAsks({ source, clusterDns, conf }: ClusterLookup, { nameservers }: ResolverSettings): Asks {
  if (source === 'none' && conf.nameservers.length === 0) return 'nobody'
  const own =
    source === 'cluster' ? [...clusterDns, ...conf.nameservers.slice(0, Math.max(1, clusterDns.length))] : clusterDns
  const isOwn = (address: string): boolean => own.includes(canonicalIp(address) ?? address)
  if (nameservers.every(isOwn)) return 'cluster'
  if (!nameservers.some(isOwn)) return 'outside'
  return nameservers.slice(0, 1).some(isOwn) ? 'cluster-first' : 'outside-first'
}

function outcomeOf({ end }: Resolution, answered: readonly Attempt[]): Outcome {
  if (end === 'found') return answered.some(({ isForwarded }) => isForwarded === true) ? 'forwarded' : 'resolved'
  return end === 'failed' || end === 'stopped' ? 'failed' : 'not-found'
}

/** A record that both replies hold, such as a CNAME, stands once. */
function mergeAnswers(attempts: readonly Attempt[]): readonly DnsRecord[] {
  const merged = new Map<string, DnsRecord>()
  for (const record of attempts.flatMap(({ answers }) => answers)) merged.set(JSON.stringify(record), record)
  return [...merged.values()]
}

function fromHosts(
  base: Pick<ClusterResolution, 'lookup' | 'settings' | 'asks'>,
  hostsEntry: HostsEntry,
): ClusterResolution {
  const { address } = hostsEntry
  const name = fqdn(base.lookup.name)
  const answer: DnsRecord = { type: address.includes(':') ? 'AAAA' : 'A', name, ttl: 0, address }
  const none = { attempts: [], queries: 0, seconds: 0, unsure: [], advice: [] }
  return { ...base, ...none, outcome: 'resolved', answers: [answer], found: name, hostsEntry }
}
