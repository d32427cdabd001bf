/** What a ruleset that was read lacks: chains that are led to, sets that are looked into; and chains that lead back to themselves. */
import { findTerse } from './find-terse'
import { type DraftTable, type Lead, type Notes, noteFinding } from './parse-draft'

export function checkLeads(notes: Notes): void {
  const whole = new Set(notes.tables.values())
  const jumps = [...notes.jumps.filter(({ table }) => whole.has(table)), ...leadsOfMaps(whole)]
  noteMissing(notes, jumps, 'chain')
  const lookups = notes.lookups.filter(({ table }) => whole.has(table))
  noteMissing(notes, lookups, 'set')
  noteLoops(notes, jumps, lookups)
  // A script may make its sets first and fill them later.
  if (!notes.signs.has('nft-script')) findTerse(notes, jumps)
}

/** The chain of a map's own leads is the map, as `@name`. */
function leadsOfMaps(tables: Iterable<DraftTable>): Lead[] {
  const leads: Lead[] = []
  for (const table of tables) {
    for (const set of table.sets.values()) {
      for (const { data } of set.elements) {
        if (data === undefined || !('target' in data)) continue
        leads.push({ table, chain: `@${set.name}`, to: data.target, ...(set.line !== undefined && { line: set.line }) })
      }
    }
  }
  return leads
}

/** Each name once a table, and of many the first three. */
function noteMissing(notes: Notes, leads: readonly Lead[], what: 'chain' | 'set'): void {
  const told = new Set<string>()
  for (const { table, chain, to, line } of leads) {
    const known = what === 'chain' ? table.chains : table.sets
    const key = `${table.family} ${table.name} ${to}`
    if (known.has(to) || told.has(key)) continue
    told.add(key)
    if (told.size > 3) continue
    const message = `${what} ${to}, which ${chain} of table ${table.family} ${table.name} leads to, is not in the listing`
    const hint = 'list the whole table: nft list table …'
    noteFinding(notes, what === 'chain' ? 'nft.missing-chain' : 'nft.missing-set', {
      message,
      hint,
      ...(line !== undefined && { line }),
    })
  }
  if (told.size <= 3) return
  const message = `${told.size - 3} more ${what}s are not in the listing`
  noteFinding(notes, what === 'chain' ? 'nft.missing-chain' : 'nft.missing-set', { message })
}

type Node = { readonly lead: Lead; readonly next: Node[]; state: 'new' | 'open' | 'done' }

/** A walk in depth, without recursion: chains may follow each other by the thousand. */
function noteLoops(notes: Notes, jumps: readonly Lead[], lookups: readonly Lead[]): void {
  const nodes = new Map<DraftTable, Map<string, Node>>()
  const nodeOf = (lead: Lead, name: string): Node => {
    const ofTable = nodes.get(lead.table) ?? new Map<string, Node>()
    nodes.set(lead.table, ofTable)
    const node: Node = ofTable.get(name) ?? { lead, next: [], state: 'new' }
    ofTable.set(name, node)
    return node
  }
  for (const lead of jumps) nodeOf(lead, lead.chain).next.push(nodeOf(lead, lead.to))
  for (const lead of lookups) nodeOf(lead, lead.chain).next.push(nodeOf(lead, `@${lead.to}`))
  for (const [table, ofTable] of nodes) {
    for (const [name, node] of ofTable) {
      if (node.state !== 'new' || name.startsWith('@') || !leadsBack(node)) continue
      const message = `chain ${name} of table ${table.family} ${table.name} leads to a chain that leads back to itself`
      const { line } = node.lead
      noteFinding(notes, 'nft.loop', { message, ...(line !== undefined && { line }) })
    }
  }
}

function leadsBack(start: Node): boolean {
  const path: { readonly node: Node; at: number }[] = [{ node: start, at: 0 }]
  start.state = 'open'
  for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
    const next = top.node.next[top.at++]
    if (next === undefined) {
      top.node.state = 'done'
      path.pop()
    } else if (next.state === 'open') {
      for (const { node } of path) node.state = 'done'
      return true
    } else if (next.state === 'new') {
      next.state = 'open'
      path.push({ node: next, at: 0 })
    }
  }
  return false
}
