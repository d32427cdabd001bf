/** A ruleset while it is read, and what its reader notes on the way. */
import type { Finding } from '#base/finding'
import type { Element } from './expression'
import { type FindingCode, nftFinding } from './findings'
import type { BaseChain, Flowtable, NamedObject, NamedSet, Ruleset, TableFamily } from './ruleset'
import { tableKey } from './ruleset'
import type { Rule } from './statement'

/** What else a text shows. */
export type NftSign = 'iptables-nft' | 'iptables-save-text' | 'nft-json' | 'nft-script'

export type NftParse = {
  readonly ruleset: Ruleset
  readonly findings: readonly Finding[]
  readonly signs: ReadonlySet<NftSign>
  /** The line at which the first table begins; absent without one, and of JSON. */
  readonly startLine?: number
}

export type DraftChain = {
  readonly name: string
  line?: number
  handle?: number
  comment?: string
  base?: BaseChain
  rules: Rule[]
}

export type DraftSet = NamedSet & { elements: Element[] }

export type DraftTable = {
  readonly family: TableFamily
  readonly name: string
  line?: number
  handle?: number
  comment?: string
  flags: readonly string[]
  objects: NamedObject[]
  readonly sets: Map<string, DraftSet>
  readonly flowtables: Map<string, Flowtable>
  readonly chains: Map<string, DraftChain>
}

/** Where a chain leads: checked when all is read. */
export type Lead = { readonly table: DraftTable; readonly chain: string; readonly to: string; readonly line?: number }

export type Notes = {
  readonly file: string
  readonly tables: Map<string, DraftTable>
  readonly findings: Finding[]
  readonly signs: Set<NftSign>
  /** To chains, and to sets. */
  readonly jumps: Lead[]
  readonly lookups: Lead[]
  /** Tables that a warning calls iptables-nft's. */
  readonly managed: Set<string>
}

export function createNotes(file: string): Notes {
  return {
    file,
    tables: new Map(),
    findings: [],
    signs: new Set(),
    jumps: [],
    lookups: [],
    managed: new Set(),
  }
}

export function createTable(family: TableFamily, name: string): DraftTable {
  return {
    family,
    name,
    flags: [],
    objects: [],
    sets: new Map(),
    flowtables: new Map(),
    chains: new Map(),
  }
}

export function tableOf(notes: Notes, family: TableFamily, name: string): DraftTable {
  const key = tableKey({ family, name })
  let table = notes.tables.get(key)
  if (table === undefined) {
    table = createTable(family, name)
    notes.tables.set(key, table)
  }
  return table
}

export function chainOf(table: DraftTable, name: string): DraftChain {
  let chain = table.chains.get(name)
  if (chain === undefined) {
    chain = { name, rules: [] }
    table.chains.set(name, chain)
  }
  return chain
}

export function noteFinding(
  notes: Notes,
  code: FindingCode,
  told: { readonly message: string; readonly line?: number; readonly index?: string; readonly hint?: string },
): void {
  notes.findings.push(nftFinding(code, { ...told, file: notes.file }))
}

/** A line in a message: short, and without what a terminal would obey. */
export function excerpt(text: string): string {
  const shown = text.length > 80 ? `${text.slice(0, 77)}…` : text
  return `\`${shown.replaceAll(/[^\x20-\x7e…]/g, '?')}\``
}
