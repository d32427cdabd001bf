/** Clients that nodes remember: `recent` lists of iptables and affinity sets of nftables, as rows that each tool prints. */
import { parseIp, printIp } from '#base/ip'
import type { Hop } from '#model/trace'
import type { StateRow } from '#model/walk'
import type { Question } from '../question'
import type { Flight } from './flight'

export type Memory = { readonly answer: (node: string, question: Question) => boolean | undefined }

/** Of a question about `client`; what is no question about a memory keeps its usual answer. */
export function memoryOf(rows: readonly StateRow[], client: Flight): Memory {
  const ip = printIp(client.source)
  const held = new Set(rows.filter(({ row }) => holderOf(row) === ip).map(({ node, table }) => `${node} ${table}`))
  return {
    answer: (node, { key }) => {
      const table = tableAsked(key)
      return table === undefined ? undefined : held.has(`${node} ${table}`)
    },
  }
}

function tableAsked(key: string): string | undefined {
  const list = /^recent:(.+):[^:]*:[^:]*$/.exec(key)?.[1]
  if (list !== undefined) return `xt_recent ${list}`
  const set = /in set (affinity-\S+)/.exec(key)?.[1]
  return set === undefined ? undefined : `set ${set}`
}

function holderOf(row: string): string | undefined {
  const text = /src=(\S+)/.exec(row)?.[1] ?? row.split(' ')[0] ?? ''
  const ip = parseIp(text)
  return ip === undefined ? undefined : printIp(ip)
}

/** What the rules noted of the client on its way: /proc/net/xt_recent's row, or the set's element. */
export function notedRows(node: string, hops: readonly Hop[], { source }: Flight): readonly StateRow[] {
  const ip = printIp(source)
  return hops.flatMap(({ rule = '' }) => {
    const list = /-m recent .*--name (\S+)/.exec(rule)?.[1]
    if (list !== undefined && rule.includes('--set'))
      return [{ node, table: `xt_recent ${list}`, row: `src=${ip} ttl: 64 last_seen: 0 oldest_pkt: 1 0`, isNew: true }]
    const set = /(?:update|add) @(affinity-\S+)/.exec(rule)?.[1]
    return set === undefined ? [] : [{ node, table: `set ${set}`, row: ip, isNew: true }]
  })
}
