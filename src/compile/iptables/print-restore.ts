/** Tables as the text that `iptables-restore` reads. */
import { printRule } from './print-rule'
import type { RestoreChain, RestoreTable } from './restore-table'

/** With `--noflush`, chains that the text does not name stay as they are. */
export function printRestore(tables: readonly RestoreTable[]): string {
  const lines: string[] = []
  for (const table of tables) {
    lines.push(`*${table.name}`)
    for (const chain of table.chains) lines.push(printChain(chain))
    for (const line of table.lines) {
      if (line.kind === 'delete') lines.push(`-X ${line.chain}`)
      else for (const rule of line.rules) lines.push(`-A ${line.chain}${printRule(rule, 'given')}`)
    }
    lines.push('COMMIT')
  }
  lines.push('')
  return lines.join('\n')
}

/** `:NAME POLICY [packets:bytes]`. */
export function printChain({ name, policy = '-', counters }: RestoreChain): string {
  return counters === undefined
    ? `:${name} ${policy} [0:0]`
    : `:${name} ${policy} [${counters.packets}:${counters.bytes}]`
}
