/** Rules while they are collected: one for each peer, its ports added as they are met, in an order that the flows do not change. */
import { parseIp } from '#base/ip'
import { hostPrefix, printPrefix } from '#base/prefix'
import { compareText, listOf } from '#base/text'
import type { Labels } from '#flows/holder'
import { type Instant, printNaive } from '#flows/instant'
import type { PodSelection } from './select-pods'

export type PolicyPort = { readonly protocol: string; readonly port: number | string }

export type RulePeer =
  /** `without`: keys of labels that they do not have. */
  | {
      readonly kind: 'pods'
      readonly namespace: string
      readonly labels: Labels
      readonly without: readonly string[]
    }
  /** What has its node's network, or a node itself: `title` is told, with the nodes. */
  | { readonly kind: 'host'; readonly title: string; readonly address: string; readonly node: string | null }
  | { readonly kind: 'api-server'; readonly address: string }
  | { readonly kind: 'address'; readonly address: string }
  | { readonly kind: 'unattributed'; readonly address: string }

export type RuleDraft = {
  readonly peer: RulePeer
  /** By `port/protocol`. */
  readonly ports: Map<string, DraftPort>
  readonly comments: Set<string>
  /** Workloads that have the labels, and are not meant by each rule. */
  readonly others: Set<string>
  newest: Instant
}

type DraftPort = {
  readonly port: PolicyPort
  /** False where only the other side recorded it. */
  isOwn: boolean
  /** Workloads that are meant; undefined where it is whoever has the labels. */
  owners: Set<string> | undefined
}

/** By the key of the peer. */
export type RuleDrafts = Map<string, RuleDraft>

export type RuleNews = {
  readonly peer: RulePeer
  readonly ports: readonly PolicyPort[]
  readonly comments?: readonly string[]
  readonly selection?: PodSelection
  readonly time: Instant
  readonly isOwn: boolean
}

export function addRule(drafts: RuleDrafts, news: RuleNews): void {
  const { peer, ports, comments = [], selection, time, isOwn } = news
  const key = keyOfPeer(peer)
  const draft = drafts.get(key) ?? {
    peer,
    ports: new Map(),
    comments: new Set(),
    others: new Set(),
    newest: time,
  }
  drafts.set(key, draft)
  draft.newest = Math.max(draft.newest, time)
  for (const comment of comments) draft.comments.add(comment)
  for (const other of selection === undefined ? [] : [selection.owner, ...selection.others]) draft.others.add(other)
  for (const port of ports) {
    const text = portText(port)
    const known = draft.ports.get(text) ?? { port, isOwn, owners: new Set() }
    draft.ports.set(text, known)
    if (isOwn) known.isOwn = true
    if (selection === undefined) known.owners = undefined
    else known.owners?.add(selection.owner)
  }
}

/** Workloads that a port is open to although nothing was seen of them there, as they have the labels of one that was; sorted. */
export function strangersOf({ others, ports }: RuleDraft): readonly string[] {
  const strangers = [...ports.values()].flatMap(({ owners }) =>
    owners === undefined ? [] : [...others].filter((one) => !owners.has(one)),
  )
  return [...new Set(strangers)].sort(compareText)
}

/** Their order is that of the rules: addresses, hosts, selectors, and last who is not known. */
export function keyOfPeer(peer: RulePeer): string {
  switch (peer.kind) {
    case 'address':
      return `cidr ${peer.address}`
    case 'api-server':
      return `host:default/svc/kubernetes ${peer.address}`
    case 'host':
      return `host:${peer.title} ${peer.address}`
    case 'pods':
      return `sel:${peer.namespace}:${labelsText(peer.labels)}${peer.without.map((key) => ` !${key}`).join('')}`
    case 'unattributed':
      return `unattributed ${peer.address}`
    default:
      return peer satisfies never
  }
}

export function labelsText(labels: Labels): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .sort(compareText)
    .join()
}

export function portText({ port, protocol }: PolicyPort): string {
  return `${port}/${protocol}`
}

export type SortedRule = {
  /** Several for one host-network peer on several nodes. */
  readonly peers: readonly RulePeer[]
  readonly ports: readonly PolicyPort[]
  readonly comments: readonly string[]
}

/** Numbers first and in order, of one number by protocol; names last. */
export function comparePorts(a: PolicyPort, b: PolicyPort): number {
  const [left, right] = [a.port, b.port]
  if (typeof left === 'number' && typeof right === 'number') return left - right || compareText(a.protocol, b.protocol)
  if (typeof left === 'number') return -1
  if (typeof right === 'number') return 1
  return compareText(left, right) || compareText(a.protocol, b.protocol)
}

/** Addresses of one host-network peer with the same ports become one rule. */
export function sortRules(drafts: RuleDrafts): readonly SortedRule[] {
  const rules = new Map<string, { readonly drafts: RuleDraft[]; readonly ports: readonly PolicyPort[] }>()
  for (const key of [...drafts.keys()].sort(compareText)) {
    const draft = drafts.get(key)
    if (draft === undefined || draft.ports.size === 0) continue
    const ports = [...draft.ports.values()].map(({ port }) => port).sort(comparePorts)
    const own = draft.peer.kind === 'host' ? `host:${draft.peer.title} ${ports.map(portText).join()}` : key
    const merged = draft.peer.kind === 'api-server' ? `api ${ports.map(portText).join()}` : own
    const known = rules.get(merged)
    if (known === undefined) rules.set(merged, { drafts: [draft], ports })
    else known.drafts.push(draft)
  }
  return [...rules.values()].map(({ drafts: own, ports }) => ({
    peers: own.map(({ peer }) => peer),
    ports,
    comments: [
      ...commentsOfPeers(own),
      ...own.flatMap(commentOnStrangers),
      ...new Set(own.flatMap(({ comments }) => [...comments].sort(compareText))),
    ],
  }))
}

function commentOnStrangers(draft: RuleDraft): readonly string[] {
  const strangers = strangersOf(draft)
  if (strangers.length === 0) return []
  return [`no label tells the pods of ${listOf(strangers)} from those that were seen: the rule is theirs too`]
}

function commentsOfPeers(drafts: readonly RuleDraft[]): readonly string[] {
  const [first] = drafts
  if (first?.peer.kind === 'unattributed') {
    return [`unattributed peer ${first.peer.address} at ${printNaive(first.newest)}`]
  }
  if (first?.peer.kind === 'api-server') return ['the API server']
  if (first?.peer.kind !== 'host') return []
  const nodes = drafts.flatMap(({ peer }) => (peer.kind === 'host' && peer.node !== null ? [peer.node] : []))
  const names = [...new Set(nodes)].sort(compareText).join()
  const place = names === '' ? '' : first.peer.title === 'node' ? ` ${names}` : ` on node ${names}`
  return [`${first.peer.title}${place} — podSelector cannot match host traffic`]
}

/** `10.0.0.1/32`, `fd00::7/128`. */
export function hostCidr(address: string): string {
  const ip = parseIp(address)
  return ip === undefined ? address : printPrefix(hostPrefix(ip))
}
