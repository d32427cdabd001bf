/** `portolan dns --serve`: the computed zone over UDP and TCP, with a line for every question, until interrupted. */
import { Failure } from '#base/failure'
import { parseEndpoint, printEndpoint, printIp } from '#base/ip'
import type { DnsServer } from '#compile/dns/build-dns-server'
import { describeHeard } from '#compile/dns/hear-cluster'
import { standIn } from '#compile/dns/stand-in'
import { isServiceName } from '#compile/dns/suggest-names'
import type { Cluster } from '#model/cluster'
import type { Answered } from '#nameserver/answer-message'
import { type ListenAddress, serveDns } from '#nameserver/serve-dns'
import type { ExitCode } from './command'
import type { Io } from './io'
import type { Asker } from './pod-dns'

export type Served = {
  readonly server: DnsServer
  readonly asker: Asker
  readonly cluster: Cluster
  /** Every question is the named pod's; else the sender's address tells whose it is. */
  readonly isPodGiven: boolean
}

export async function serveCluster(
  io: Io,
  listen: ListenAddress,
  { server, asker, cluster, isPodGiven }: Served,
): Promise<ExitCode> {
  const searches = [...asker.formed.conf.searches, ...podSearches(cluster)]
  const outside = standIn({
    clusterZones: server.clusterZones,
    searches,
    isService: (name) => isServiceName(name, cluster),
  })
  const nameserver = await serveDns(listen, {
    answer: (question) => outside(question, server.answer(question)),
    takesOtherClasses: server.takesOtherClasses,
    ...(isPodGiven && { client: asker.client }),
    note: (answered) => io.out(printAnswered(answered)),
  })
  const { address, port } = nameserver
  io.err(
    `answering on ${printEndpoint(address, port)}, UDP and TCP; names outside the cluster get stand-ins (192.0.2.1, 2001:db8::1); Ctrl-C ends it\n`,
  )
  await interruption()
  await nameserver.close()
  return 0
}

export function listenAddress(text: string): ListenAddress {
  const parsed = parseEndpoint(text)
  if (parsed === undefined) {
    throw new Failure(
      'usage.bad-argument',
      `--serve ${text}: write IP:PORT such as 127.0.0.1:5353, or [IP]:PORT for IPv6`,
    )
  }
  return { address: printIp(parsed.ip), port: parsed.port ?? 53 }
}

function podSearches({ pods }: Cluster): readonly string[] {
  return [...new Set([...pods.values()].flatMap(({ dnsConfig }) => dnsConfig?.searches ?? []))]
}

function printAnswered({ from, transport, name, type, reply }: Answered): string {
  const { rcode, answers, because, unsure = [] } = reply
  const result = describeHeard({ rcode, answers, because, isPositive: answers.length > 0 })
  const doubt = unsure.length === 0 ? '' : ` (unknown: ${unsure.join(', ')})`
  return `${from} ${transport} ${type} ${name} ${result}: ${because}${doubt}\n`
}

function interruption(): Promise<void> {
  return new Promise((done) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => done())
  })
}
