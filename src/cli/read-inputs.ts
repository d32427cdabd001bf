/** Reads what the options name: the cluster's objects, and the rules of a node. */
import { getHeapStatistics } from 'node:v8'
import { Failure } from '#base/failure'
import type { Finding } from '#base/finding'
import { compareText, listOf } from '#base/text'
import { selectSlices } from '#compile/endpointslices/select-slices'
import { joinRulesets } from '#compile/iptables/join-rulesets'
import { type IpSet, isIpsetText, parseIpset, setTwice, withoutIpset } from '#compile/iptables/parse-ipset'
import { parseSave, type RulesetParse } from '#compile/iptables/parse-save'
import type { Ruleset } from '#compile/iptables/rule'
import type { NftParse } from '#compile/nftables/parse-draft'
import { parseNftJson } from '#compile/nftables/parse-json'
import { parseNftList } from '#compile/nftables/parse-list'
import type { Ruleset as NftRuleset, Table } from '#compile/nftables/ruleset'
import type { Cluster } from '#model/cluster'
import type { EndpointSlice } from '#model/endpoint-slice'
import { heapLimit } from '#sources/heap-limit'
import { readText } from '#sources/read-text'
import type { Io } from './io'
import type { FromOptions } from './options'
import { type Objects, type ObjectsWanted, readObjects } from './read-inputs-objects'

export type ClusterInput = Objects & { readonly slices: readonly EndpointSlice[] }

export async function readClusterInput(io: Io, options: FromOptions, wanted: ObjectsWanted): Promise<ClusterInput> {
  const objects = await readObjects(io, options, wanted)
  const slices = selectSlices(objects.cluster, options.slices)
  return { ...objects, slices: slices.value, findings: [...objects.findings, ...slices.findings] }
}

/** Throws when the node is not in the input, naming those that are. */
export function requireNode(cluster: Cluster, name: string | undefined, flag = '--node'): void {
  if (name === undefined || cluster.nodes.has(name)) return
  const names = [...cluster.nodes.keys()].sort(compareText)
  const known = names.length === 0 ? 'the input has no Node' : `the input has ${listOf(names)}`
  throw new Failure('usage.not-found', `no Node is named "${name}": ${known}; name one of them with ${flag}`)
}

export type RulesetInput = {
  readonly rulesets: readonly Ruleset[]
  readonly nft?: NftRuleset
  readonly signs: RulesetParse['signs']
  readonly sets: ReadonlyMap<string, IpSet>
  readonly findings: readonly Finding[]
  /** Characters read. */
  readonly size?: number
}

type Draft = {
  readonly rulesets: Ruleset[]
  readonly nftTables: Map<string, Table>
  readonly signs: Set<'list-output' | 'nft-text' | 'legacy-present' | 'nft-present'>
  readonly sets: Map<string, IpSet>
  readonly findings: Finding[]
}

/** Each file holds rules of either engine, of any table, family and variant, or both, or the output of `ipset save`. */
export async function readRulesets(io: Io, paths: readonly string[]): Promise<RulesetInput> {
  const draft: Draft = { rulesets: [], nftTables: new Map(), signs: new Set(), sets: new Map(), findings: [] }
  let size = 0
  for (const path of paths) {
    const text = await readText(path, { stdin: io.stdin, say: (sentence) => io.err(`${sentence}\n`) })
    size += text.length
    refuseTooLarge(path, { size, heapPerCharacter })
    if (isNftJson(text)) addNft(draft, parseNftJson(text, path))
    else if (!isIpsetText(text)) addRules(draft, text, path)
    else {
      addSets(draft, text, path)
      const rest = withoutIpset(text)
      if (/^[ \t]*[*:]\S|^(?:\[\d+:\d+\] )?-[A-Z] |^\s*table |^\s*add /m.test(rest)) addRules(draft, rest, path)
    }
  }
  const { nftTables, ...rest } = draft
  if (rest.sets.size > 0 && rest.rulesets.length + nftTables.size + rest.signs.size === 0) {
    throw new Failure(
      'input.not-a-ruleset',
      `${listOf(paths, 3)} holds sets and no rules; add the output of iptables-save as another --ruleset`,
    )
  }
  return nftTables.size === 0 ? { ...rest, size } : { ...rest, size, nft: { tables: nftTables } }
}

/** Measured: 320 MB of rules take 1.2 GB of heap, whether they are long (of Services) or short (of a block list). */
const heapPerCharacter = 4

/** V8 ends the program without a word to its user when the heap is full. */
export function refuseTooLarge(
  path: string,
  { size, heapPerCharacter }: { readonly size: number; readonly heapPerCharacter: number },
): void {
  if (size * heapPerCharacter <= heapLimit() - heapOfProgram) return
  const megabytes = Math.ceil(size / 1e6)
  const needed = Math.ceil((size * heapPerCharacter + heapOfProgram) / 1e6)
  throw new Failure(
    'input.too-large',
    `${path}: ${megabytes} MB of rules need more memory than this process may take; set NODE_OPTIONS=--max-old-space-size=${needed}, or save one table at a time: iptables-save -t nat`,
  )
}

/** What the program itself takes, before it has read anything. */
const heapOfProgram = getHeapStatistics().used_heap_size

function addSets(draft: Draft, text: string, path: string): void {
  const parsed = parseIpset(text, path)
  for (const [name, set] of parsed.sets) {
    if (draft.sets.has(name)) draft.findings.push(setTwice(name, path, 1))
    draft.sets.set(name, set)
  }
  draft.findings.push(...parsed.findings)
}

function isNftJson(text: string): boolean {
  return /^\s*\{\s*"nftables"/.test(text.slice(0, 1000))
}

function addNft(draft: Draft, parsed: NftParse): void {
  for (const [key, table] of parsed.ruleset.tables) draft.nftTables.set(key, table)
  draft.findings.push(...parsed.findings)
}

/** A node's file may hold both; what one parser passes over as foreign is the other's. */
function addRules(draft: Draft, text: string, path: string): void {
  const saved = parseSave(text, path)
  const isNft = saved.signs.has('nft-text') || /^\s*(add|create) table /m.test(text)
  const listed = isNft ? parseNftList(text, path) : undefined
  const hasTables = (listed?.ruleset.tables.size ?? 0) > 0
  if (!hasTables) refuseOther(path, text, saved)
  draft.findings.push(...joinRulesets(draft.rulesets, saved.rulesets, path))
  for (const sign of saved.signs) draft.signs.add(sign)
  const own = hasTables ? saved.findings.filter((finding) => finding.code !== 'ruleset.foreign-lines') : saved.findings
  draft.findings.push(...own)
  if (listed === undefined || !hasTables) return
  const isMixed = saved.rulesets.length > 0
  addNft(draft, {
    ...listed,
    findings: listed.findings.filter((finding) => !(isMixed && finding.code === 'nft.foreign-lines')),
  })
}

/** Text that holds no rule is refused with what it is, unless it only warns that the rules are elsewhere. */
function refuseOther(path: string, text: string, parsed: RulesetParse): void {
  if (parsed.rulesets.length > 0 || parsed.signs.has('legacy-present')) return
  const name = path === '-' ? 'standard input' : path
  if (parsed.signs.has('list-output')) {
    throw new Failure(
      'input.not-a-ruleset',
      `${name} is the output of iptables -L, which leaves out parts of the rules; run iptables-save instead`,
    )
  }
  const what = text.trim() === '' ? 'is empty' : 'holds no rules of iptables or nftables'
  throw new Failure(
    'input.not-a-ruleset',
    `${name} ${what}; it should be the output of iptables-save, nft list ruleset or ipset save`,
  )
}
