/** The kubernetes plugin: every answer that CoreDNS gives for a cluster's zone (plugin/kubernetes and backend_lookup.go, 1.14). */
import { countOf } from '#base/text'
import { serviceNameLabel } from '#model/endpoint-slice'
import { addressOfReverse, foldName, fqdn, isReverseZone, isWithin, matchZone } from './domain-name'
import { fallsThrough } from './fallthrough'
import { endpointLabel, findTargets, type Target, type ZoneView } from './find-targets'
import { primaryZone } from './kubernetes-options'
import { parseQuestion } from './parse-question'
import type { Handler, Plugin } from './plugin'
import {
  type DnsRecord,
  emptyReply,
  type Forwarded,
  type PointerRecord,
  type Question,
  type Reply,
  withDoubt,
} from './record'
import { serviceRecords } from './service-records'
import { startRecord } from './start-record'

/** `lookUp` asks the whole server, as a name outside the zone needs; `own` are the addresses of CoreDNS's own Service. */
export type KubernetesDeps = ZoneView & { readonly lookUp: Handler; readonly own?: OwnService }

export type OwnService = { readonly name: string; readonly namespace: string; readonly addresses: readonly string[] }

export function serveKubernetes(deps: KubernetesDeps): Plugin {
  const { zones, fallthrough, ttl } = deps.options
  return {
    name: 'kubernetes',
    serve: (question, next) => {
      const folded = foldName(question.name)
      const matched = matchZone(folded, zones)
      if (matched === undefined) return next(question)
      // The case of the question is kept in every name of the answer.
      const zone = matched === '.' ? '.' : question.name.slice(question.name.length - matched.length)
      if (question.type === 'AXFR' || question.type === 'IXFR') {
        return emptyReply('REFUSED', 'kubernetes', 'zone transfers need the transfer plugin')
      }
      const outcome = answerIn(question, { deps, zone, folded, matched })
      if (outcome.kind === 'missing' && fallsThrough(fallthrough, folded)) {
        const reply = next(question)
        return { ...reply, because: `${outcome.because}; it falls through: ${reply.because}` }
      }
      const reply = replyOf(outcome, startRecord(zone, ttl))
      return deps.options.multiclusterZones.includes(matched)
        ? withDoubt(reply, `${matched} is a zone of ServiceImports, which Portolan does not read`)
        : reply
    },
  }
}

/** `name` is folded in `folded`; `zone` has the asked case, `matched` has none. */
type Place = { readonly deps: KubernetesDeps; readonly zone: string; readonly folded: string; readonly matched: string }

type Outcome =
  | { readonly kind: 'missing'; readonly because: string }
  | {
      readonly kind: 'there'
      readonly because: string
      readonly answers: readonly DnsRecord[]
      readonly additional?: readonly DnsRecord[]
      readonly forwarded?: Forwarded
      readonly unsure?: readonly string[]
      /** The names lead nowhere, and `because` tells all of them. */
      readonly isLost?: boolean
    }

function replyOf(outcome: Outcome, start: DnsRecord): Reply {
  const isMissing = outcome.kind === 'missing'
  const answers = isMissing ? [] : outcome.answers
  return {
    ...emptyReply(isMissing ? 'NXDOMAIN' : 'NOERROR', 'kubernetes', outcome.because),
    answers,
    authority: answers.length === 0 ? [start] : [],
    isAuthoritative: true,
    ...(!isMissing && { additional: outcome.additional ?? [] }),
    ...(!isMissing && outcome.forwarded !== undefined && { forwarded: outcome.forwarded }),
    ...(!isMissing && outcome.unsure !== undefined && { unsure: outcome.unsure }),
  }
}

function answerIn(question: Question, place: Place): Outcome {
  const isApex = place.folded === place.matched
  switch (question.type) {
    case 'TXT':
      return answerText(question, place)
    case 'PTR':
      return answerPointer(question, place)
    case 'SRV':
      return answerService(question, place)
    case 'SOA':
      return isApex
        ? there('the zone itself', [startRecord(place.zone, place.deps.options.ttl)])
        : there('only the zone itself has a SOA record', [])
    case 'NS':
      return isApex ? answerNameservers(question, place) : withoutRecords(question, place)
    case 'CNAME':
      return answerAlias(question, place)
    case 'A':
    case 'AAAA':
      return answerAddresses(question, place, [])
    default:
      return withoutRecords(question, place)
  }
}

function there(because: string, answers: readonly DnsRecord[], additional?: readonly DnsRecord[]): Outcome {
  return { kind: 'there', because, answers, ...(additional !== undefined && { additional }) }
}

type Located =
  | { readonly kind: 'missing'; readonly because: string }
  | { readonly kind: 'there'; readonly because: string; readonly targets: readonly Target[] }

function locate({ deps, folded, matched }: Place): Located {
  if (folded === `ns.dns.${matched}`) return { kind: 'there', because: 'the name of CoreDNS itself', targets: [] }
  const parsed = parseQuestion(folded, matched, deps.options.isZonal)
  if (parsed.kind === 'apex') return { kind: 'there', because: `${folded} exists and has no records`, targets: [] }
  if (parsed.kind === 'invalid') return { kind: 'missing', because: parsed.because }
  if (isReverseZone(matched)) return { kind: 'missing', because: 'reverse zones hold PTR records alone' }
  const { namespace } = parsed
  if (parsed.kind === 'namespace') {
    if (!deps.index.hasNamespace(namespace)) return { kind: 'missing', because: `there is no namespace ${namespace}` }
    if (parsed.branch === 'pod' && deps.options.pods === 'disabled') {
      return { kind: 'missing', because: 'pod names are off: the Corefile does not say pods insecure or verified' }
    }
    return { kind: 'there', because: `namespace ${namespace} exists, and its name has no records`, targets: [] }
  }
  const { targets, because } = findTargets(parsed, deps)
  return targets === undefined ? { kind: 'missing', because } : { kind: 'there', because, targets }
}

/** At most so many names in a row stand for another. */
const mostAliases = 10

function answerAddresses(question: Question, place: Place, above: readonly PointerRecord[]): Outcome {
  const own = ownAddresses(question, place)
  if (own !== undefined) return own
  const located = locate(place)
  if (located.kind === 'missing') return located
  const family = question.type === 'A' ? 'ipv4' : 'ipv6'
  const { ttl } = place.deps.options
  const { name } = question
  const seen = new Set<string>()
  for (const target of located.targets) {
    if (target.kind === 'name') return followAlias(question, place, { target, above, because: located.because })
    if (target.family === family) seen.add(target.address)
  }
  const type = question.type === 'A' ? 'A' : 'AAAA'
  const answers = [...seen].map((address): DnsRecord => ({ type, name, ttl, address }))
  const isOther = answers.length === 0 && located.targets.length > 0
  const because = isOther
    ? `${located.because}, and none of family ${family === 'ipv4' ? 'IPv4' : 'IPv6'}`
    : located.because
  return there(because, answers)
}

type Alias = {
  readonly target: Target & { kind: 'name' }
  readonly above: readonly PointerRecord[]
  readonly because: string
}

/** A name in the same zone is looked up here, any other by the whole server, as a client would ask it. */
function followAlias(question: Question, place: Place, { target, above, because }: Alias): Outcome {
  const to = fqdn(target.name)
  const folded = foldName(to)
  const isLoop = isWithin(folded, place.folded) || above.some((record) => foldName(record.target) === folded)
  if (isLoop || above.length >= mostAliases) {
    const names = [...above.map((record) => record.name), question.name, to].map((name) => name.slice(0, -1))
    const round = names.slice(0, names.findIndex((name, at) => names.indexOf(name) < at) + 1 || undefined)
    const how = `the names ${isLoop ? 'go round in a circle' : 'are too many in a row'}: ${round.join(' → ')}`
    return { kind: 'there', because: above.length === 0 ? `${because}, and ${how}` : how, answers: [], isLost: true }
  }
  const alias: PointerRecord = { type: 'CNAME', name: question.name, ttl: place.deps.options.ttl, target: to }
  if (isWithin(folded, place.matched)) {
    const deeper = answerAddresses({ ...question, name: to }, { ...place, folded }, [...above, alias])
    if (deeper.kind === 'there' && deeper.isLost === true)
      return above.length === 0 ? { ...deeper, because: `${because}, and ${deeper.because}` } : deeper
    if (deeper.kind === 'missing' || deeper.answers.length === 0) {
      return there(`${because}, but ${deeper.because}`, [])
    }
    return { ...deeper, because: `${because}; ${deeper.because}`, answers: [alias, ...deeper.answers] }
  }
  const reply = place.deps.lookUp({ ...question, name: to })
  return {
    kind: 'there',
    because:
      reply.forwarded === undefined ? `${because}: ${reply.because}` : `${because}, which is asked outside the cluster`,
    answers: [alias, ...reply.answers],
    ...(reply.forwarded !== undefined && { forwarded: reply.forwarded }),
    ...(reply.unsure !== undefined && { unsure: reply.unsure }),
  }
}

function answerAlias(question: Question, place: Place): Outcome {
  const located = locate(place)
  if (located.kind === 'missing') return located
  const [first] = located.targets
  if (first?.kind !== 'name') return there(`${located.because}: an address, no other name`, [])
  const { ttl } = place.deps.options
  return there(located.because, [{ type: 'CNAME', name: question.name, ttl, target: fqdn(first.name) }])
}

function answerService(question: Question, place: Place): Outcome {
  const located = locate(place)
  if (located.kind === 'missing') return located
  const { answers, additional } = serviceRecords(question.name, located.targets, {
    zone: place.zone,
    ttl: place.deps.options.ttl,
  })
  const because = answers.length === 0 ? `${located.because}: nothing that has a port` : located.because
  return there(because, answers, additional)
}

/** How many seconds the version record may be kept. */
const versionTtl = 28800

function answerText(question: Question, place: Place): Outcome {
  if (place.folded === `dns-version.${place.matched}`) {
    return there('the version of the DNS specification', [
      { type: 'TXT', name: question.name, ttl: versionTtl, text: '1.1.0' },
    ])
  }
  const located = locate(place)
  if (located.kind === 'missing' || located.targets.length > 0) return withoutRecords(question, place)
  const parsed = parseQuestion(place.folded, place.matched, place.deps.options.isZonal)
  if (parsed.kind === 'object' && parsed.topology !== undefined) return there(located.because, [])
  return {
    kind: 'missing',
    because: 'CoreDNS says of a name without any record that it does not exist when asked for TXT',
  }
}

function withoutRecords(question: Question, place: Place): Outcome {
  const located = locate(place)
  return located.kind === 'missing' ? located : there(`${located.because}; it has no ${question.type} records`, [])
}

function answerPointer(question: Question, place: Place): Outcome {
  const address = addressOfReverse(place.folded)
  if (address === undefined) return withoutRecords(question, place)
  const { options } = place.deps
  const zone = primaryZone(options, isReverseZone)
  const names = pointerNames(address, place.deps).map((name) => (zone === '.' ? `${name}.` : `${name}.${zone}`))
  if (names.length === 0)
    return { kind: 'missing', because: `no Service and no ready endpoint has the address ${address}` }
  const answers = [...new Set(names)].map(
    (target): DnsRecord => ({ type: 'PTR', name: question.name, ttl: options.ttl, target }),
  )
  const isService = place.deps.index.serviceAt(address) !== undefined
  return there(
    `${address} is the address of ${isService ? 'a Service' : countOf(answers.length, 'ready endpoint')}`,
    answers,
  )
}

/** The option `namespaces` hides these names too, `namespace_labels` alone does not. */
function pointerNames(address: string, { index, options }: KubernetesDeps): readonly string[] {
  const isShown = (namespace: string): boolean => options.namespaces === undefined || index.hasNamespace(namespace)
  const service = index.serviceAt(address)
  if (service !== undefined && isShown(service.meta.namespace)) {
    return [`${service.meta.name}.${service.meta.namespace}.svc`]
  }
  return index
    .endpointsAt(address)
    .filter(({ slice, endpoint }) => {
      const isNamed = !options.pointersNeedHostname || (endpoint.hostname ?? '') !== ''
      return isNamed && isShown(slice.meta.namespace)
    })
    .map(({ slice: { meta }, endpoint }) => {
      const label = endpointLabel(endpoint, address, options.usesPodNames)
      return `${label}.${meta.labels[serviceNameLabel]}.${meta.namespace}.svc`
    })
}

/** `ns.dns` below the zone stands for CoreDNS itself. */
function ownAddresses(question: Question, { deps, folded, matched }: Place): Outcome | undefined {
  if (folded !== `ns.dns.${matched}`) return undefined
  const { ttl } = deps.options
  const type = question.type === 'A' ? 'A' : 'AAAA'
  const answers = (deps.own?.addresses ?? [])
    .filter((address) => address.includes(':') === (type === 'AAAA'))
    .map((address): DnsRecord => ({ type, name: question.name, ttl, address }))
  return there('CoreDNS’s own Service', answers)
}

function answerNameservers(question: Question, { deps, zone }: Place): Outcome {
  const { own, options } = deps
  if (own === undefined) return there('the input does not tell which Service CoreDNS has', [])
  const target = `${own.name}.${own.namespace}.svc.${zone}`
  const additional = own.addresses.map((address): DnsRecord => {
    return { type: address.includes(':') ? 'AAAA' : 'A', name: target, ttl: options.ttl, address }
  })
  return there('CoreDNS’s own Service', [{ type: 'NS', name: question.name, ttl: options.ttl, target }], additional)
}
