/** What a resolver hears in a cluster: CoreDNS's answers, and what is assumed of names outside its zone. */
import { countOf, listOf } from '#base/text'
import type { Ask, Heard } from './attempt'
import type { DnsServer } from './build-dns-server'
import { foldName, isWithin, labelsOf } from './domain-name'
import { type Client, type DnsRecord, printRecordData, type Reply } from './record'

export type Asking = {
  readonly typed: string
  readonly client?: Client
  /** Whether a folded name is that of a Service, as NAME.NAMESPACE, or one below it. */
  readonly isService?: (name: string) => boolean
}

/** The name as typed counts as answered outside; what the search list makes of it is assumed not to be there. */
export function askCluster(server: DnsServer, { typed, client, isService }: Asking): Ask {
  const asTyped = foldName(typed)
  return (name, type) => {
    const reply = server.answer({ name, type, ...(client !== undefined && { client }) })
    if (reply.forwarded === undefined) return hearReply(reply)
    const doubts = reply.unsure === undefined ? {} : { unsure: reply.unsure }
    if (reply.answers.length === 0) {
      const outside = { isTyped: foldName(name) === asTyped, how: reply.because, isService }
      return { ...hearOutside(name, outside), ...doubts }
    }
    // An alias is of no use when nobody has the name that it leads to.
    const absence = explainAbsence(reply.forwarded.name, isService)
    if (absence === undefined) return hearReply(reply)
    const because = `${reply.because}; assumed absent there: ${absence}`
    return { rcode: 'NOERROR', answers: [], isPositive: false, because, isAssumed: true, ...doubts }
  }
}

/** A nameserver that is not the cluster's: it knows no name of the cluster. */
export function askOutside(clusterZones: readonly string[], { typed, isService }: Asking): Ask {
  const asTyped = foldName(typed)
  return (name) => {
    const folded = foldName(name)
    const zone = clusterZones.find((one) => isWithin(folded, one))
    if (zone !== undefined) return assumedMissing(`the nameserver is not the cluster’s and does not know ${zone}`)
    return hearOutside(name, { isTyped: folded === asTyped, how: 'asked of a nameserver outside', isService })
  }
}

/** An empty resolv.conf: the C library asks 127.0.0.1, where a pod has no nameserver, and hears so at once. */
export const askNobody: Ask = () => ({
  rcode: 'REFUSED',
  answers: [],
  isPositive: false,
  because: 'resolv.conf names no nameserver, so 127.0.0.1 is asked, where nobody listens in a pod',
})

/** musl sends to all nameservers at once; where these do not say the same, chance decides. */
export function askBoth(cluster: Ask, outside: Ask): Ask {
  return (name, type) => {
    const heard = cluster(name, type)
    const other = outside(name, type)
    if (heard.rcode === other.rcode && heard.isPositive === other.isPositive) return heard
    const doubt = `the cluster’s DNS and the other nameserver differ about ${name}, and musl takes the first reply`
    return { ...heard, unsure: [...(heard.unsure ?? []), doubt] }
  }
}

function hearReply({ rcode, answers, because, forwarded, unsure, by }: Reply): Heard {
  const kept = by === 'kubernetes' || by === 'server' ? because : `${because} (plugin ${by})`
  const fitting = countFitting(answers)
  return {
    rcode,
    answers,
    isPositive: rcode === 'NOERROR' && answers.length > 0,
    because: fitting < answers.length ? `${kept}; over UDP ${fitting} of them fit into 512 bytes` : kept,
    ...(forwarded !== undefined && { isForwarded: true }),
    ...(fitting < answers.length && { fitting }),
    ...(unsure !== undefined && { unsure }),
  }
}

/** Header and question; then a record whose name is a pointer to the question's has 12 bytes before its data. */
function countFitting(answers: readonly DnsRecord[]): number {
  const [first] = answers
  if (first === undefined) return 0
  if (answers.some(({ name, type }) => name !== first.name || (type !== 'A' && type !== 'AAAA'))) return answers.length
  const room = 512 - 12 - (first.name.length + 1) - 4
  return Math.min(answers.length, Math.floor(room / (first.type === 'A' ? 16 : 28)))
}

type Outside = {
  readonly isTyped: boolean
  readonly how: string
  readonly isService: Asking['isService']
}

function hearOutside(name: string, { isTyped, how, isService }: Outside): Heard {
  if (!isTyped) return assumedMissing(`${how}; assumed absent: the search list made this name`)
  const absence = explainAbsence(name, isService)
  if (absence !== undefined) return assumedMissing(`${how}; assumed absent: ${absence}`)
  const because = `${how}; as typed, it counts as answered`
  return { rcode: 'NOERROR', answers: [], isPositive: true, because, isForwarded: true }
}

/** Why no nameserver outside is taken to have the name. */
export function explainAbsence(name: string, isService: Asking['isService']): string | undefined {
  const labels = labelsOf(name)
  if (labels.length < 2) return 'it has one label'
  if (labels.at(-1)?.toLowerCase() === 'svc') return 'no name outside ends in svc'
  return isService?.(foldName(name)) === true ? 'it names a Service of the cluster' : undefined
}

function assumedMissing(because: string): Heard {
  return { rcode: 'NXDOMAIN', answers: [], isPositive: false, because, isAssumed: true }
}

/** The longest text of records that a column takes. */
const longestData = 48

/** `10.96.0.20`, `NXDOMAIN`, `no records`: what one attempt brought, in short. */
export function describeHeard({ rcode, answers, isForwarded }: Heard): string {
  if (rcode !== 'NOERROR') return rcode
  const data = listOf(answers.map(printRecordData))
  if (answers.length > 0) return data.length > longestData ? countOf(answers.length, 'record') : data
  return isForwarded === true ? 'forwarded' : 'no records'
}
