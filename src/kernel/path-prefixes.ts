/** The datapath's table of networks by VPC, brought to what it is to hold row by row: a network's class is never away meanwhile. */
import { type Ip, parseIp, printIp } from '#base/ip'
import { type Prefix, prefixOf, printPrefix } from '#base/prefix'
import { prefixKeyLayout } from '#compile/traffic-policy/datapath-maps'
import type { Bpf } from './bpf-sys'
import { type BpfMap, lookUp, nextKey, numberKey, remove, update } from './maps'

/** `pathClass` is a position in `pathClasses`. */
export type PrefixRow = { readonly vpc: number; readonly prefix: Prefix; readonly pathClass: number }

/** Tells how many rows were written or removed. */
export function setPathPrefixes(bpf: Bpf, map: BpfMap, wanted: readonly PrefixRow[]): number {
  const before = new Map(readPathPrefixes(bpf, map).map((row) => [nameOf(row), row]))
  const now = new Map(wanted.map((row) => [nameOf(row), row]))
  const gone = [...before].filter(([name]) => !now.has(name)).map(([, row]) => row)
  const changed = [...now].filter(([name, { pathClass }]) => before.get(name)?.pathClass !== pathClass)
  // A full table takes what is new only after what is gone.
  const isTight = before.size + changed.length > map.shape.maxEntries
  if (isTight) for (const row of gone) remove(bpf, map, printKey(row))
  for (const [, row] of changed) update(bpf, map, printKey(row), numberKey(row.pathClass), 'write path prefix')
  if (!isTight) for (const row of gone) remove(bpf, map, printKey(row))
  return changed.length + gone.length
}

export function readPathPrefixes(bpf: Bpf, map: BpfMap): readonly PrefixRow[] {
  const rows: PrefixRow[] = []
  for (let key = nextKey(bpf, map); key !== undefined; key = nextKey(bpf, map, key)) {
    const value = lookUp(bpf, map, key)
    const row = value === undefined ? undefined : parseRow(key, value.readUInt32LE(0))
    if (row !== undefined) rows.push(row)
  }
  return rows
}

function nameOf({ vpc, prefix }: PrefixRow): string {
  return `${vpc} ${printPrefix(prefix)}`
}

function printKey({ vpc, prefix }: PrefixRow): Buffer {
  const key = Buffer.alloc(prefixKeyLayout.size)
  key.writeUInt32LE(64 + prefix.length, prefixKeyLayout.length)
  key.writeUInt32LE(vpc, prefixKeyLayout.vpc)
  key.writeUInt32LE(prefix.ip.family === 'ipv4' ? 4 : 6, prefixKeyLayout.family)
  for (const [index, word] of prefix.ip.words.entries()) key.writeUInt32BE(word, prefixKeyLayout.address + 4 * index)
  return key
}

function parseRow(key: Buffer, pathClass: number): PrefixRow | undefined {
  const family = key.readUInt32LE(prefixKeyLayout.family) === 4 ? 'ipv4' : 'ipv6'
  const words = Array.from({ length: family === 'ipv4' ? 1 : 4 }, (_, index) =>
    key.readUInt32BE(prefixKeyLayout.address + 4 * index),
  )
  const length = key.readUInt32LE(prefixKeyLayout.length) - 64
  const ip: Ip = { family, words }
  // What another program wrote into the table is no network of ours.
  if (length < 0 || length > 32 * words.length || parseIp(printIp(ip)) === undefined) return undefined
  return { vpc: key.readUInt32LE(prefixKeyLayout.vpc), prefix: prefixOf(ip, length), pathClass }
}
