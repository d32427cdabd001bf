/** Keys of policy maps with numbers where `cilium-dbg` printed labels. */
import type { NodeWorld } from '#compile/cilium/node-world'
import { reservedIdentities } from '#compile/identities/identities'
import { printLabelSet } from '#compile/identities/label'

/** `Ingress k8s:app=web;… 80/TCP`; labels that nobody has stay as they are. */
export function numberLabels(world: NodeWorld, key: string): string {
  const [, direction = '', identity = '', port = ''] = /^(\S+) (.*) (\S+)$/.exec(key) ?? []
  if (/^\d+$/.test(identity)) return key
  return `${direction} ${numberOf(world, identity) ?? identity} ${port}`
}

function numberOf({ identities }: NodeWorld, text: string): number | undefined {
  if (text === 'ANY' || text === 'reserved:unknown') return 0
  return tableOf(identities).get(text)
}

const tables = new WeakMap<NodeWorld['identities'], ReadonlyMap<string, number>>()

function tableOf(identities: NodeWorld['identities']): ReadonlyMap<string, number> {
  const known = tables.get(identities)
  if (known !== undefined) return known
  const all = [
    ...reservedIdentities(identities.settings.isDualStack),
    ...identities.table.values(),
    ...identities.prefixes.identities,
  ]
  const table = new Map(all.map(({ number, labels }) => [printLabelSet(labels), number]))
  tables.set(identities, table)
  return table
}
