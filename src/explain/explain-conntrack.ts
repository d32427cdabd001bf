/** Connection tracking: connections that the rules translated once, and that go on where they went. */
import { printEndpoint } from '#base/ip'
import { compareText, countOf, listOf } from '#base/text'
import type { ServicePortPlan } from '#compile/services/service-plan'
import type { ConntrackEntry } from '#trace/conntrack-entry'
import { adoptFinding } from './adopt-finding'
import { type ExplainFinding, type Layer, type LayerTable, layerOf } from './explanation'
import { explainFinding, type FindingCode } from './findings'
import { holderOf } from './index-holders'
import type { ConntrackTable } from './parse-conntrack'
import type { ServiceView } from './service-view'

export function explainConntrack(view: ServiceView): Layer {
  const table = view.input.conntrack
  if (table === undefined) {
    const fact = 'not given: --conntrack takes the output of conntrack -L on the node of the client'
    return { layer: 'conntrack', status: 'skipped', facts: [fact], findings: [] }
  }
  const tracked = trackedOf(view, table)
  return layerOf('conntrack', {
    facts: factsOf(table, tracked),
    table: tableOf(tracked),
    findings: [
      ...strayFindings(view, table, tracked),
      ...unrepliedFindings(view, tracked),
      ...skewFindings(view, tracked),
      ...table.findings.map((finding) => adoptFinding(finding)),
    ],
  })
}

type Fate = 'endpoint' | 'leaving' | 'dead' | 'foreign' | 'untranslated'

/** One entry that was sent to an address of the Service. */
type Tracked = {
  readonly entry: ConntrackEntry
  readonly plan: ServicePortPlan
  /** Where it goes, as `ip:port`. */
  readonly target: string
  readonly fate: Fate
}

function trackedOf(view: ServiceView, { entries }: ConntrackTable): readonly Tracked[] {
  const places = placesOf(view)
  return entries.flatMap((entry) => {
    const { original, reply, protocol } = entry
    const { destination, destinationPort = 0 } = original
    const plan =
      places.get(`${protocol} ${printEndpoint(destination, destinationPort)}`) ??
      (isNodeAddress(view, destination) ? places.get(`${protocol} node:${destinationPort}`) : undefined)
    if (plan === undefined) return []
    const target = printEndpoint(reply.source, reply.sourcePort ?? 0)
    return [{ entry, plan, target, fate: fateOf(view, plan, { entry, target }) }]
  })
}

/** Service ports by where clients send to. */
function placesOf({ plans }: ServiceView): ReadonlyMap<string, ServicePortPlan> {
  const places = new Map<string, ServicePortPlan>()
  for (const plan of plans.flatMap(({ ports }) => ports)) {
    for (const ip of [plan.clusterIP, ...plan.externalIPs, ...plan.loadBalancerVIPs]) {
      places.set(`${plan.protocol} ${printEndpoint(ip, plan.port)}`, plan)
    }
    if (plan.nodePort !== 0) places.set(`${plan.protocol} node:${plan.nodePort}`, plan)
  }
  return places
}

function isNodeAddress({ holders }: ServiceView, ip: string): boolean {
  return holders.nodes.has(ip) || ip.startsWith('127.')
}

function fateOf(
  { holders }: ServiceView,
  plan: ServicePortPlan,
  { entry, target }: { readonly entry: ConntrackEntry; readonly target: string },
): Fate {
  const { original, reply } = entry
  if (reply.source === original.destination && reply.sourcePort === original.destinationPort) return 'untranslated'
  const endpoint = plan.endpoints.find(({ text }) => text === target)
  if (endpoint !== undefined) return endpoint.isReady ? 'endpoint' : 'leaving'
  return holderOf(holders, reply.source) === undefined ? 'dead' : 'foreign'
}

function factsOf({ entries, file }: ConntrackTable, tracked: readonly Tracked[]): readonly string[] {
  const closed = tracked.filter(({ entry }) => isClosing(entry)).length
  const translated = tracked.filter(({ entry }) => entry.reply.destination !== entry.original.source).length
  const leaving = tracked.filter(({ fate }) => fate === 'leaving').length
  return [
    `${tracked.length} of ${countOf(entries.length, 'tracked connection')} in ${file} ${tracked.length === 1 ? 'goes' : 'go'} to this Service`,
    ...(closed === 0 ? [] : [`${countOf(closed, 'connection is', 'connections are')} closing and of no matter`]),
    ...(translated === 0 ? [] : [`${translated} with the client’s address translated`]),
    ...(leaving === 0 ? [] : [`${leaving} to endpoints that take no new connections: they go on until the pod ends`]),
  ]
}

const closingStates = new Set(['TIME_WAIT', 'CLOSE', 'LAST_ACK', 'FIN_WAIT', 'CLOSE_WAIT'])

function isClosing({ state }: ConntrackEntry): boolean {
  return state !== undefined && closingStates.has(state)
}

function groupBy(
  tracked: readonly Tracked[],
  keyOf: (one: Tracked) => string,
): ReadonlyMap<string, readonly Tracked[]> {
  const groups = new Map<string, Tracked[]>()
  for (const one of tracked) {
    const list = groups.get(keyOf(one))
    if (list === undefined) groups.set(keyOf(one), [one])
    else list.push(one)
  }
  return groups
}

const fateWords: Readonly<Record<Fate, string>> = {
  endpoint: 'ready endpoint',
  leaving: 'endpoint that is not ready',
  dead: 'no endpoint, and nobody has the address',
  foreign: 'no endpoint of the Service',
  untranslated: 'not translated',
}

function tableOf(tracked: readonly Tracked[]): LayerTable {
  const rows = [...groupBy(tracked, ({ target, plan }) => `${plan.name} ${plan.protocol} ${target}`).values()]
    .map((members) => {
      const [first] = members
      const clients = new Set(members.map(({ entry }) => entry.original.source))
      const unreplied = members.filter(({ entry }) => entry.isUnreplied).length
      const to = first === undefined ? '' : `${printOriginal(first.entry)}/${first.plan.protocol}`
      return [
        to,
        first?.target ?? '',
        String(members.length),
        String(clients.size),
        String(unreplied),
        first === undefined ? '' : fateWords[first.fate],
      ]
    })
    .sort((a, b) => compareText(a.join(), b.join()))
  return { columns: ['SENT TO', 'GOES TO', 'CONNECTIONS', 'CLIENTS', 'UNREPLIED', 'WHICH IS'], rows }
}

function printOriginal({ original }: ConntrackEntry): string {
  return printEndpoint(original.destination, original.destinationPort ?? 0)
}

const strayCodes = {
  dead: 'explain.conntrack-dead-endpoint',
  foreign: 'explain.conntrack-foreign-pod',
  untranslated: 'explain.conntrack-untranslated',
} as const satisfies Readonly<Record<string, FindingCode>>

function strayFindings(
  view: ServiceView,
  { file }: ConntrackTable,
  tracked: readonly Tracked[],
): readonly ExplainFinding[] {
  return (['dead', 'foreign', 'untranslated'] as const).flatMap((fate) => {
    const live = tracked.filter((one) => one.fate === fate && !isClosing(one.entry))
    const [first] = live
    if (first === undefined) return []
    const groups = [
      ...groupBy(live, ({ entry, target }) => `${printOriginal(entry)} ${entry.protocol} ${target}`).values(),
    ]
    return [
      explainFinding(strayCodes[fate], {
        about: view.service.meta,
        message: strayMessage(view, fate, { first, live }),
        evidence: groups.slice(0, 10).map((members) => groupText(file, members)),
        hint: `delete what decides for them: ${groups
          .slice(0, 3)
          .map((members) => deletion(members[0] ?? first))
          .join('; ')}`,
      }),
    ]
  })
}

function strayMessage(
  { holders }: ServiceView,
  fate: keyof typeof strayCodes,
  { first, live }: { readonly first: Tracked; readonly live: readonly Tracked[] },
): string {
  const goes = countOf(live.length, 'tracked connection', 'tracked connections')
  const [still, are] = live.length === 1 ? ['still goes', 'is'] : ['still go', 'are']
  const targets = listOf([...new Set(live.map(({ target }) => target))], 5)
  const to = printOriginal(first.entry)
  switch (fate) {
    case 'dead':
      return `${goes} to ${to} ${still} to ${targets}, which no pod has any more: the rules are not asked again while packets keep coming`
    case 'foreign':
      return `${goes} to ${to} ${still} to ${targets}, which ${holderOf(holders, first.entry.reply.source) ?? 'someone else'} has now`
    case 'untranslated':
      return `${goes} to ${to} ${are} tracked without translation: begun before the rules were there, and never shown to them since`
    default:
      return fate satisfies never
  }
}

function groupText(file: string, members: readonly Tracked[]): string {
  const [first] = members
  if (first === undefined) return ''
  const { entry, target } = first
  const client = printEndpoint(entry.original.source, entry.original.sourcePort ?? 0)
  const state = entry.isUnreplied ? ' [UNREPLIED]' : entry.state === undefined ? '' : ` ${entry.state}`
  const more = members.length > 1 ? `, and ${members.length - 1} more` : ''
  return `${file}:${entry.line} ${entry.protocol} ${client} to ${printOriginal(entry)} goes to ${target}${state}${more}`
}

function deletion({ entry }: Tracked): string {
  const { original, reply, protocol } = entry
  const isTranslated = reply.source !== original.destination
  const back = isTranslated ? ` --reply-src ${reply.source}` : ''
  return `conntrack -D -p ${protocol} --orig-dst ${original.destination} --orig-port-dst ${original.destinationPort ?? 0}${back}`
}

/** Two connections without answer may be chance; more than half of them are not. */
function unrepliedFindings(view: ServiceView, tracked: readonly Tracked[]): readonly ExplainFinding[] {
  const toEndpoints = tracked.filter(({ fate }) => fate === 'endpoint')
  const silent = [...groupBy(toEndpoints, ({ target }) => target)].flatMap(([target, members]) => {
    const unreplied = members.filter(({ entry }) => entry.isUnreplied).length
    return unreplied > 2 && unreplied * 2 > members.length ? [{ target, unreplied, count: members.length }] : []
  })
  if (silent.length === 0) return []
  return [
    explainFinding('explain.conntrack-unreplied', {
      about: view.service.meta,
      message: `${listOf(
        silent.map(({ target }) => target),
        6,
      )} is a ready endpoint and does not answer`,
      evidence: silent.map(
        ({ target, unreplied, count }) =>
          `${target}: ${unreplied} of ${countOf(count, 'connection')} without an answer`,
      ),
      hint: 'a network policy, the pod’s own firewall or a program that listens on 127.0.0.1 only; try from the pod’s node',
    }),
  ]
}

/** Fewer clients than this tell nothing about how they are spread. */
const leastClients = 5

function skewFindings(view: ServiceView, tracked: readonly Tracked[]): readonly ExplainFinding[] {
  if (view.service.affinitySeconds === undefined) return []
  return [
    ...groupBy(
      tracked.filter(({ fate }) => fate === 'endpoint'),
      ({ plan }) => `${plan.name} ${plan.protocol}`,
    ).values(),
  ].flatMap((members) => {
    const clients = new Map(members.map(({ entry, target }) => [entry.original.source, target]))
    const counts = new Map<string, number>()
    for (const target of clients.values()) counts.set(target, (counts.get(target) ?? 0) + 1)
    const ready = members[0]?.plan.endpoints.filter(({ isReady }) => isReady).length ?? 0
    const [top] = [...counts].sort((a, b) => b[1] - a[1])
    if (top === undefined || clients.size < leastClients || ready < 2) return []
    if (top[1] / clients.size < Math.min(0.8, Math.max(0.4, 2 / ready))) return []
    return [
      explainFinding('explain.affinity-skew', {
        about: view.service.meta,
        path: 'spec.sessionAffinity',
        message: `${top[1]} of ${clients.size} clients stay with ${top[0]}, one of ${ready} ready endpoints: affinity keeps them there`,
        evidence: [...counts].map(([target, count]) => `${target}: ${countOf(count, 'client')}`),
        hint: `they spread again ${view.service.affinitySeconds} s after their last connection; sessionAffinity: None spreads new ones at once`,
      }),
    ]
  })
}
