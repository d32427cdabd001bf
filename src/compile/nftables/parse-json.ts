/** The JSON of `nft -j list ruleset`, or commands in nft's JSON, into a ruleset. */

import type { Expression, Verdict } from './expression'
import type { Json, JsonObject } from './json-text'
import { checkLeads } from './parse-check'
import { chainOf, createNotes, type DraftTable, type NftParse, type Notes, noteFinding, tableOf } from './parse-draft'
import {
  isArray,
  isObject,
  type JsonEntry,
  numberOf,
  onlyEntry,
  splitEntries,
  textOf,
  textsOf,
} from './parse-json-entries'
import {
  addJsonElements,
  hasIntervalData,
  parseJsonBase,
  parseJsonFlowtable,
  parseJsonObject,
  parseJsonSet,
} from './parse-json-object'
import { parseJsonStatement } from './parse-json-statement'
import { finishParse } from './parse-list'
import type { TableFamily } from './ruleset'
import type { Rule, Statement } from './statement'

const families: readonly TableFamily[] = ['ip', 'ip6', 'inet', 'arp', 'bridge', 'netdev']

/** `file` names the text in findings. Never throws: what cannot be read is told beside what can. */
export function parseNftJson(text: string, file: string): NftParse {
  const notes = createNotes(file)
  const found = splitEntries(text)
  if (found === undefined) {
    const message = 'this is not the JSON that nft prints: there is no {"nftables": […]}'
    noteFinding(notes, 'nft.bad-json', { message, hint: 'write it with `nft -j list ruleset`' })
    return finishParse(notes)
  }
  for (const entry of found.entries) parseEntry(notes, entry)
  for (const table of notes.tables.values()) {
    for (const [name, set] of table.sets) {
      if (set.data !== undefined && hasIntervalData(set)) table.sets.set(name, { ...set, isDataInterval: true })
    }
  }
  if (found.isCut()) {
    const hint = 'take the listing again, into a file'
    noteFinding(notes, 'nft.cut-json', {
      message:
        'the JSON ends before its brackets close: what follows is not known, and chains told before their rules look empty',
      hint,
    })
  }
  checkLeads(notes)
  return finishParse(notes)
}

function parseEntry(notes: Notes, { index, json }: JsonEntry): void {
  const entry = onlyEntry(json)
  if (entry === undefined) {
    tellBad(notes, index, 'it is no object')
    return
  }
  const [kind, inside] = entry
  if (kind === 'metainfo') return
  if (kind === 'add' || kind === 'create' || kind === 'insert') {
    notes.signs.add('nft-script')
    const [object, told] = onlyEntry(inside) ?? ['', null]
    parseObject(notes, { index, kind: object, json: told, isFirst: kind === 'insert' })
  } else if (kind === 'flush' && onlyEntry(inside)?.[0] === 'ruleset') notes.tables.clear()
  else parseObject(notes, { index, kind, json: inside, isFirst: false })
}

function tellBad(notes: Notes, index: number, why: string): void {
  const hint = 'take the listing again; answers that would meet it may be wrong'
  noteFinding(notes, 'nft.bad-json', {
    message: `an entry is left out, because ${why}`,
    index: `nftables[${index}]`,
    hint,
  })
}

type Told = { readonly index: number; readonly kind: string; readonly json: Json; readonly isFirst: boolean }

function parseObject(notes: Notes, told: Told): void {
  const { index, kind, json } = told
  const family = families.find((one) => isObject(json) && one === json.family)
  const tableName = isObject(json) ? textOf(kind === 'table' ? json.name : json.table) : undefined
  if (!isObject(json) || family === undefined || tableName === undefined) {
    tellBad(notes, index, 'its table is not told')
    return
  }
  const table = tableOf(notes, family, tableName)
  const isRead = kind === 'rule' ? addRule(notes, table, { ...told, json }) : addObject(notes, table, { ...told, json })
  if (!isRead) tellBad(notes, index, `this ${kind} cannot be read: ${JSON.stringify(json).slice(0, 80)}`)
}

type ObjectTold = Told & { readonly json: JsonObject }

function addObject(notes: Notes, table: DraftTable, told: ObjectTold): boolean {
  const { kind, json } = told
  const handle = numberOf(json.handle)
  const known = handle === undefined ? {} : { handle }
  switch (kind) {
    case 'table': {
      const comment = textOf(json.comment)
      Object.assign(table, known, { flags: textsOf(json.flags) }, comment === undefined ? {} : { comment })
      return true
    }
    case 'chain': {
      const name = textOf(json.name)
      const base = parseJsonBase(json)
      const comment = textOf(json.comment)
      if (name === undefined) return false
      Object.assign(chainOf(table, name), known, base && { base }, comment === undefined ? {} : { comment })
      return true
    }
    case 'set':
    case 'map':
    case 'meter':
      return addSet(notes, table, told)
    case 'element': {
      const set = table.sets.get(textOf(json.name) ?? '')
      return set !== undefined && addJsonElements(set, json.elem, table) === 0
    }
    case 'flowtable': {
      const flowtable = parseJsonFlowtable(json)
      if (flowtable !== undefined) table.flowtables.set(flowtable.name, { ...flowtable, ...known })
      return flowtable !== undefined
    }
    default: {
      const object = parseJsonObject(kind, json)
      if (object !== undefined) table.objects.push({ ...object, ...known })
      return object !== undefined
    }
  }
}

function addSet(notes: Notes, table: DraftTable, { index, json }: ObjectTold): boolean {
  const set = parseJsonSet(json, table)
  if (set === undefined) return false
  const handle = numberOf(json.handle)
  table.sets.set(set.name, { ...set, ...(handle !== undefined && { handle }) })
  const bad = addJsonElements(table.sets.get(set.name) ?? set, json.elem, table)
  if (bad > 0) {
    const message = `${bad} of the elements of set ${set.name} cannot be read and are left out`
    noteFinding(notes, 'nft.bad-element', { message, index: `nftables[${index}]` })
  }
  return true
}

function addRule(notes: Notes, table: DraftTable, { json, isFirst }: ObjectTold): boolean {
  const chain = textOf(json.chain)
  const statements: Statement[] = []
  if (chain === undefined || !isArray(json.expr)) return false
  for (const one of json.expr) {
    const parsed = parseJsonStatement(one, table)
    if (parsed === undefined) return false
    statements.push(...parsed)
  }
  const handle = numberOf(json.handle)
  const comment = textOf(json.comment)
  const rule: Rule = { statements, ...(comment !== undefined && { comment }), ...(handle !== undefined && { handle }) }
  const { rules } = chainOf(table, chain)
  if (isFirst) rules.unshift(rule)
  else rules.push(rule)
  noteLeads(notes, table, { chain, statements })
  return true
}

function noteLeads(
  notes: Notes,
  table: DraftTable,
  { chain, statements }: { readonly chain: string; readonly statements: readonly Statement[] },
): void {
  for (const statement of statements) {
    if (statement.kind === 'xt') notes.signs.add('iptables-nft')
    else if (statement.kind === 'block') {
      for (const rule of statement.rules) noteLeads(notes, table, { chain, statements: rule.statements })
    } else if ('target' in statement) notes.jumps.push({ table, chain, to: statement.target })
    else if (statement.kind === 'vmap') noteMap(notes, table, { chain, data: statement.data })
    else if (statement.kind === 'match' && statement.right.kind === 'reference') {
      notes.lookups.push({ table, chain, to: statement.right.set })
    }
  }
}

function noteMap(
  notes: Notes,
  table: DraftTable,
  { chain, data }: { readonly chain: string; readonly data: Expression },
): void {
  if (data.kind === 'reference') notes.lookups.push({ table, chain, to: data.set })
  if (data.kind !== 'set') return
  for (const element of data.elements) {
    const verdict: Expression | Verdict | undefined = element.data
    if (verdict !== undefined && 'target' in verdict) notes.jumps.push({ table, chain, to: verdict.target })
  }
}
