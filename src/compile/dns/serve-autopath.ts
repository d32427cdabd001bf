/** The autopath plugin: CoreDNS walks the client's search list itself, so that the client asks once (plugin/autopath, 1.14). */
import type { Directive } from './corefile'
import { foldName, isWithin, matchZone, zonesOfOrigin } from './domain-name'
import type { KubernetesOptions } from './kubernetes-options'
import type { Plugin } from './plugin'
import type { Client, Question, Reply } from './record'
import type { ZoneIndex } from './zone-index'

export type AutopathDeps = {
  readonly kubernetes?: { readonly options: KubernetesOptions; readonly index: ZoneIndex }
  /** The search list of CoreDNS's own resolv.conf, which is the node's. */
  readonly nodeSearch: readonly string[]
}

export function serveAutopath({ args }: Directive, serverZones: readonly string[], deps: AutopathDeps): Plugin {
  const own = args.slice(0, -1).flatMap(zonesOfOrigin)
  const zones = own.length === 0 ? serverZones : own
  const usesKubernetes = args.at(-1) === '@kubernetes'
  return {
    name: 'autopath',
    serve: (question, next) => {
      const folded = foldName(question.name)
      if (matchZone(folded, zones) === undefined) return next(question)
      const search = usesKubernetes ? podSearch(folded, question.client, deps) : [...deps.nodeSearch.map(foldName), '']
      const [first] = search
      if (first === undefined || first === '' || !isWithin(folded, first) || folded === first) return next(question)
      return walk(question, search, next)
    },
  }
}

/** Only a running pod that CoreDNS knows by its address has a search list; without an address any pod of the namespace will do. */
function podSearch(
  folded: string,
  client: Client | undefined,
  { kubernetes, nodeSearch }: AutopathDeps,
): readonly string[] {
  if (kubernetes?.options.pods !== 'verified') return []
  const zone = matchZone(folded, kubernetes.options.zones)
  const namespace =
    client?.address === undefined
      ? client?.namespace
      : kubernetes.index.podsAt(client.address).find(({ phase }) => phase === 'Running')?.meta.namespace
  if (zone === undefined || namespace === undefined) return []
  const below = zone === '.' ? '' : zone
  return [`${namespace}.svc.${below}`, `svc.${below}`, zone, ...nodeSearch.map(foldName), '']
}

/** The first candidate that does not fail is the answer, with a CNAME from the asked name; when all fail, the first reply is. */
function walk(question: Question, search: readonly string[], next: (question: Question) => Reply): Reply {
  const [first = ''] = search
  const base = question.name.slice(0, question.name.length - first.length)
  let firstReply: Reply | undefined
  for (const domain of search) {
    const name = `${base}${domain}`
    const reply = next({ ...question, name })
    firstReply ??= reply
    const isAssumedMissing = reply.forwarded !== undefined && reply.answers.length === 0 && domain !== ''
    if (reply.rcode !== 'NOERROR' || isAssumedMissing) continue
    const because = domain === first ? reply.because : `autopath goes on to ${name}: ${reply.because}`
    return { ...reply, because, answers: withAlias(question.name, reply) }
  }
  return firstReply ?? next(question)
}

function withAlias(asked: string, { answers, forwarded }: Reply): Reply['answers'] {
  const target = answers[0]?.name ?? forwarded?.name
  if (target === undefined || foldName(target) === foldName(asked)) return answers
  return [{ type: 'CNAME', name: asked, ttl: answers[0]?.ttl ?? 0, target }, ...answers]
}
