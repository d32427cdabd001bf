/** A ruleset as `nft list ruleset` (1.0.6) prints it; of one table, as `nft list table` does. */
import { printTable, type TableOptions } from './print-table'
import type { Ruleset } from './ruleset'

export function printList({ tables }: Ruleset, options: Pick<TableOptions, 'hasHandles'> = {}): string {
  return Array.from(tables.values(), (table) => printTable(table, options)).join('')
}
