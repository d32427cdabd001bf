/** BPF maps by descriptor: made, looked up, written and walked, one row at a time. */
import { closeSync } from 'node:fs'
import { type MapShape, type MapType, mapTypes } from '#compile/bpf/map-shape'
import { type Bpf, kernelFailure, succeed } from './bpf-sys'
import { possibleCpus } from './cpus'

export type BpfMap = { readonly fd: number; readonly shape: MapShape }

const noPreallocation = 1
const enoent = 2

/** `inner` is the pattern of a map in map. */
export function createMap(bpf: Bpf, shape: MapShape, inner?: BpfMap): BpfMap {
  const result = bpf.call('mapCreate', `create ${shape.name}`, (attributes) => {
    attributes.u32(0, mapTypes[shape.type])
    attributes.u32(4, shape.keySize)
    attributes.u32(8, shape.valueSize)
    attributes.u32(12, shape.maxEntries)
    // The kernel refuses a prefix trie without this flag.
    attributes.u32(16, shape.type === 'prefixTrie' ? noPreallocation : 0)
    if (inner !== undefined) attributes.u32(20, inner.fd)
    attributes.name(28, shape.name)
  })
  return { fd: succeed(result, `creating the table ${shape.name}`), shape }
}

/** What the kernel says of a map: a pin may have been made by a version with another layout. */
export function readMapShape(bpf: Bpf, fd: number): MapShape & { readonly id: number } {
  const info = readObjectInfo(bpf, fd, 'reading what a table is')
  const type = Object.entries(mapTypes).find(([, number]) => number === info.readUInt32LE(0))?.[0]
  return {
    id: info.readUInt32LE(4),
    name: info.toString('latin1', 24, 40).replace(/\0.*$/s, ''),
    type: (type ?? 'hash') as MapType,
    keySize: info.readUInt32LE(8),
    valueSize: info.readUInt32LE(12),
    maxEntries: info.readUInt32LE(16),
  }
}

export function readObjectInfo(bpf: Bpf, fd: number, tried: string): Buffer {
  const info = Buffer.alloc(256)
  const result = bpf.call('objectInfo', 'object info', (attributes) => {
    attributes.u32(0, fd)
    attributes.u32(4, info.length)
    attributes.pointer(8, info)
  })
  succeed(result, tried)
  return info
}

/** Of a per-CPU map: the values of all possible CPUs, one after the other. */
export function lookUp(bpf: Bpf, map: BpfMap, key: Uint8Array): Buffer | undefined {
  const value = Buffer.alloc(rowSize(map.shape))
  const result = bpf.call('mapLookup', `look up ${map.shape.name}`, (attributes) => {
    attributes.u32(0, map.fd)
    attributes.pointer(8, key)
    attributes.pointer(16, value)
  })
  if (result === -enoent) return undefined
  succeed(result, `reading a row of ${map.shape.name}`)
  return value
}

export function update(bpf: Bpf, map: BpfMap, key: Uint8Array, value: Uint8Array, step?: string): void {
  const result = bpf.call('mapUpdate', step ?? `update ${map.shape.name}`, (attributes) => {
    attributes.u32(0, map.fd)
    attributes.pointer(8, key)
    attributes.pointer(16, value)
  })
  succeed(result, `writing a row of ${map.shape.name}`)
}

/** Whether there was such a row. */
export function remove(bpf: Bpf, map: BpfMap, key: Uint8Array): boolean {
  const result = bpf.call('mapDelete', `delete from ${map.shape.name}`, (attributes) => {
    attributes.u32(0, map.fd)
    attributes.pointer(8, key)
  })
  if (result === -enoent) return false
  succeed(result, `removing a row of ${map.shape.name}`)
  return true
}

/** The key after this one, or the first; undefined after the last. */
export function nextKey(bpf: Bpf, map: BpfMap, key?: Uint8Array): Buffer | undefined {
  const next = Buffer.alloc(map.shape.keySize)
  const result = bpf.call('mapNextKey', `walk ${map.shape.name}`, (attributes) => {
    attributes.u32(0, map.fd)
    if (key !== undefined) attributes.pointer(8, key)
    attributes.pointer(16, next)
  })
  if (result === -enoent) return undefined
  if (result < 0) throw kernelFailure(-result, `walking ${map.shape.name}`)
  return next
}

export function closeMap(map: BpfMap): void {
  closeSync(map.fd)
}

/** Bytes of a value as user space sees it: one slot a possible CPU, each padded to eight bytes. */
export function rowSize(shape: MapShape): number {
  const isPerCpu = shape.type === 'perCpuArray' || shape.type === 'perCpuHash' || shape.type === 'lruPerCpuHash'
  return isPerCpu ? ((shape.valueSize + 7) & ~7) * possibleCpus() : shape.valueSize
}

export function numberKey(number: number): Buffer {
  const key = Buffer.alloc(4)
  key.writeUInt32LE(number)
  return key
}
