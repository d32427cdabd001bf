/** What a resolver hears in a cluster: CoreDNS's answers, and what is assumed of names outside its zone. */
import { listOf } from '#base/text'
import type { Ask, Heard } from './attempt'
import type { DnsServer } from './build-dns-server'
import { foldName, isWithin, labelsOf } from './domain-name'
import { type Client, printRecordData, type Reply } from './record'

export type Asking = { readonly typed: string; readonly client?: Client }

/** The name as typed counts as answered outside; what the search list makes of it is assumed not to be there. */
export function askCluster(server: DnsServer, { typed, client }: Asking): Ask {
  const asTyped = foldName(typed)
  return (name, type) => {
    const reply = server.answer({ name, type, ...(client !== undefined && { client }) })
    if (reply.forwarded === undefined || reply.answers.length > 0) return hearReply(reply)
    const doubts = reply.unsure === undefined ? {} : { unsure: reply.unsure }
    return { ...hearOutside(name, { isTyped: foldName(name) === asTyped, how: reply.because }), ...doubts }
  }
}

/** A nameserver that is not the cluster's: it knows no name of the cluster. */
export function askOutside(clusterZones: readonly string[], { typed }: Asking): Ask {
  const asTyped = foldName(typed)
  return (name) => {
    const folded = foldName(name)
    const zone = clusterZones.find((one) => isWithin(folded, one))
    if (zone !== undefined) return assumedMissing(`the nameserver is not the cluster’s and does not know ${zone}`)
    return hearOutside(name, { isTyped: folded === asTyped, how: 'asked of a nameserver outside the cluster' })
  }
}

function hearReply({ rcode, answers, because, forwarded, unsure, by }: Reply): Heard {
  return {
    rcode,
    answers,
    isPositive: rcode === 'NOERROR' && answers.length > 0,
    because: by === 'kubernetes' || by === 'server' ? because : `${because} (plugin ${by})`,
    ...(forwarded !== undefined && { isForwarded: true }),
    ...(unsure !== undefined && { unsure }),
  }
}

type Outside = { readonly isTyped: boolean; readonly how: string }

function hearOutside(name: string, { isTyped, how }: Outside): Heard {
  if (!isTyped)
    return assumedMissing(`outside the cluster’s zones, ${how}; made by the search list, so assumed not to be there`)
  const labels = labelsOf(name)
  if (labels.length < 2)
    return assumedMissing(`outside the cluster’s zones, ${how}; a name of one label, so assumed not to be there`)
  if (labels.at(-1)?.toLowerCase() === 'svc') {
    return assumedMissing(
      `outside the cluster’s zones, ${how}; no name outside ends in svc, so assumed not to be there`,
    )
  }
  const because = `outside the cluster’s zones, ${how}; the name as typed counts as answered`
  return { rcode: 'NOERROR', answers: [], isPositive: true, because, isForwarded: true }
}

function assumedMissing(because: string): Heard {
  return { rcode: 'NXDOMAIN', answers: [], isPositive: false, because, isAssumed: true }
}

/** `10.96.0.20`, `NXDOMAIN`, `no records`: what one attempt brought, in short. */
export function describeHeard({ rcode, answers, isForwarded }: Heard): string {
  if (rcode !== 'NOERROR') return rcode
  if (answers.length > 0) return listOf(answers.map(printRecordData), 6)
  return isForwarded === true ? 'forwarded' : 'no records'
}
