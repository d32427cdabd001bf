/** One table as `nft list table` (1.0.6) prints it. */
import { objectLines } from './print-object'
import { setLines } from './print-set'
import { printRule, type StatementPlace } from './print-statement'
import { printPriority } from './priority-names'
import type { BaseChain, Chain, Flowtable, NamedObject, NamedSet, Table, TableFamily } from './ruleset'

export type TableOptions = {
  /** As `nft -a` does, where handles are known. */
  readonly hasHandles?: boolean
  /** For `nft -f`, where a few statements want another spelling than lists have. */
  readonly isScript?: boolean
}

export function printTable(table: Table, options: TableOptions): string {
  const out: string[] = [`table ${table.family} ${table.name} {${handleOf(table, options)}\n`]
  if (table.flags.length > 0) out.push(`\tflags ${table.flags.join(',')}\n`)
  if (table.comment !== undefined) out.push(`\tcomment "${table.comment}"\n`)
  let hasBlock = table.flags.length > 0
  const block = (text: string): void => {
    out.push(hasBlock ? `\n${text}` : text)
    hasBlock = true
  }
  for (const object of table.objects) block(printObject(object, options))
  for (const set of table.sets.values()) block(printSet(set, options))
  for (const flowtable of table.flowtables.values()) block(printFlowtable(flowtable, table.family, options))
  for (const chain of table.chains.values()) block(printChain(chain, table.family, options))
  out.push('}\n')
  return out.join('')
}

function handleOf({ handle }: { readonly handle?: number }, { hasHandles = false }: TableOptions): string {
  return hasHandles && handle !== undefined ? ` # handle ${handle}` : ''
}

function braces(head: string, lines: readonly string[], handle: string): string {
  return `\t${head} {${handle}\n${lines.map((line) => `\t\t${line}\n`).join('')}\t}\n`
}

function printObject(object: NamedObject, options: TableOptions): string {
  return braces(`${object.kind} ${object.name}`, objectLines(object), handleOf(object, options))
}

function printSet(set: NamedSet, options: TableOptions): string {
  return braces(`${set.data === undefined ? 'set' : 'map'} ${set.name}`, setLines(set), handleOf(set, options))
}

function printFlowtable(flowtable: Flowtable, family: TableFamily, options: TableOptions): string {
  return braces(`flowtable ${flowtable.name}`, flowtableLines(flowtable, family), handleOf(flowtable, options))
}

export function flowtableLines(flowtable: Flowtable, family: TableFamily): string[] {
  const lines = [`hook ${flowtable.hook} priority ${printPriority(family, 'ingress', flowtable.priority)}`]
  if (flowtable.devices.length > 0) lines.push(`devices = { ${flowtable.devices.join(', ')} }`)
  if (flowtable.flags.length > 0) lines.push(`flags ${flowtable.flags.join(',')}`)
  if (flowtable.hasCounter) lines.push('counter')
  return lines
}

function printChain(chain: Chain, family: TableFamily, options: TableOptions): string {
  const out: string[] = [`\tchain ${chain.name} {${handleOf(chain, options)}\n`]
  if (chain.comment !== undefined) out.push(`\t\tcomment "${chain.comment}"\n`)
  if (chain.base !== undefined) out.push(`\t\t${baseLine(chain.base, family)}\n`)
  const place: StatementPlace = { family, indent: '\t\t', isScript: options.isScript ?? false }
  for (const rule of chain.rules) out.push(`\t\t${printRule(rule, place)}${handleOf(rule, options)}\n`)
  out.push('\t}\n')
  return out.join('')
}

/** `type filter hook input priority filter; policy accept;`. One device stands in quotes, several do not. */
export function baseLine({ type, hook, priority, devices, policy, flags }: BaseChain, family: TableFamily): string {
  const [first, ...others] = devices
  const on =
    first === undefined ? '' : others.length === 0 ? ` device "${first}"` : ` devices = { ${devices.join(', ')} }`
  const more = `${policy === undefined ? '' : ` policy ${policy};`}${flags.map((flag) => ` flags ${flag};`).join('')}`
  return `type ${type} hook ${hook}${on} priority ${printPriority(family, hook, priority)};${more}`
}
