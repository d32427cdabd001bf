/** Priorities by their names, where nft has one for the family and hook: `dstnat - 10`. */
import type { Hook, TableFamily } from './ruleset'

type Named = { readonly name: string; readonly priority: number; readonly hooks?: readonly Hook[] }

const ofInet: readonly Named[] = [
  { name: 'raw', priority: -300 },
  { name: 'mangle', priority: -150 },
  { name: 'dstnat', priority: -100, hooks: ['prerouting'] },
  { name: 'filter', priority: 0 },
  { name: 'security', priority: 50 },
  { name: 'srcnat', priority: 100, hooks: ['postrouting'] },
]
const ofBridge: readonly Named[] = [
  { name: 'dstnat', priority: -300, hooks: ['prerouting'] },
  { name: 'filter', priority: -200 },
  { name: 'out', priority: 100, hooks: ['output'] },
  { name: 'srcnat', priority: 300, hooks: ['postrouting'] },
]
const ofLink: readonly Named[] = [{ name: 'filter', priority: 0 }]

/** A name counts for ten steps on either side. */
const reach = 10

/** What `nft list` (1.0.6) prints. */
export function printPriority(family: TableFamily, hook: Hook, priority: number): string {
  const near = namesFor(family, hook).find((named) => Math.abs(priority - named.priority) <= reach)
  if (near === undefined) return String(priority)
  const step = priority - near.priority
  if (step === 0) return near.name
  return `${near.name} ${step < 0 ? '-' : '+'} ${Math.abs(step)}`
}

/** The priority of a name, undefined where the family or hook has no such name. */
export function priorityOf(family: TableFamily, hook: Hook, name: string): number | undefined {
  return namesFor(family, hook).find((named) => named.name === name)?.priority
}

function namesFor(family: TableFamily, hook: Hook): readonly Named[] {
  const isLink = family === 'arp' || family === 'netdev' || hook === 'ingress' || hook === 'egress'
  const names = family === 'bridge' ? ofBridge : isLink ? ofLink : ofInet
  return names.filter(({ hooks }) => hooks === undefined || hooks.includes(hook))
}
