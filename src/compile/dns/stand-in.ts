/** Answers for names outside the cluster where a real client must hear something: addresses that documents use, and no such name. */
import { foldName, fqdn, isWithin, matchZone } from './domain-name'
import { explainAbsence } from './hear-cluster'
import type { DnsRecord, Question, Reply } from './record'

/** RFC 5737 and RFC 3849: nobody has these. */
const addresses = { A: '192.0.2.1', AAAA: '2001:db8::1' } as const

type Setting = {
  readonly clusterZones: readonly string[]
  readonly searches: readonly string[]
  readonly isService?: (name: string) => boolean
}

/**
 * A name below a search domain was made by a search list and does not exist; nor does one of a single label, or that of a
 * Service without the zone. Every other name counts as answered, and its addresses stand in for those that a nameserver outside
 * would give.
 */
export function standIn({ clusterZones, searches, isService }: Setting): (question: Question, reply: Reply) => Reply {
  const made = searches.map((domain) => foldName(fqdn(domain))).filter((domain) => domain !== '.')
  const outside = made.filter((domain) => matchZone(domain, clusterZones) === undefined)
  return (question, reply) => {
    if (reply.forwarded === undefined) return reply
    const name = foldName(reply.forwarded.name)
    const isAlias = reply.answers.length > 0
    const isMade = outside.some((domain) => isWithin(name, domain)) || explainAbsence(name, isService) !== undefined
    if (isMade && !isAlias) {
      return { ...reply, rcode: 'NXDOMAIN', because: `${reply.because}; assumed not to be there` }
    }
    const added = isMade ? [] : addressOf(question, reply.forwarded.name)
    return { ...reply, answers: [...reply.answers, ...added], because: `${reply.because}; a stand-in for its answer` }
  }
}

function addressOf({ type }: Question, name: string): readonly DnsRecord[] {
  return type === 'A' || type === 'AAAA' ? [{ type, name, ttl: 0, address: addresses[type] }] : []
}
