/** A ruleset as a script for `nft -f`: it puts each table in the place of the one of that name, all in one transaction. */
import { printTable } from './print-table'
import type { Ruleset, Table } from './ruleset'

export function printScript({ tables }: Ruleset): string {
  return Array.from(tables.values(), (table) => replaceTable(table) + printTable(table, { isScript: true })).join('\n')
}

/** A table that is not there cannot be deleted, so it is made first. */
function replaceTable({ family, name }: Table): string {
  return `add table ${family} ${name}\ndelete table ${family} ${name}\n`
}
