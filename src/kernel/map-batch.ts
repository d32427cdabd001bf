/** Many rows of a map in few calls. */
import { type Bpf, succeed } from './bpf-sys'
import { type BpfMap, rowSize } from './maps'

export type Rows = { readonly count: number; readonly keys: Buffer; readonly values: Buffer }

const enoent = 2
const enospc = 28
const elementFlags = 40

/** Calls `take` with each batch of rows; `isTaken` removes them from the map as they are read. The batch's buffers are reused. */
export function readBatches(
  bpf: Bpf,
  map: BpfMap,
  { count, isTaken = false }: { readonly count: number; readonly isTaken?: boolean },
  take: (rows: Rows) => void,
): void {
  let size = Math.min(count, map.shape.maxEntries)
  let keys = Buffer.alloc(size * map.shape.keySize)
  let values = Buffer.alloc(size * rowSize(map.shape))
  // The token is a bucket number, or as long as a key for tries and arrays.
  const token = Buffer.alloc(Math.max(8, map.shape.keySize))
  for (let isFirst = true; ; ) {
    const result = bpf.call(isTaken ? 'lookupAndDeleteBatch' : 'lookupBatch', 'read rows', (attributes) => {
      if (!isFirst) attributes.pointer(0, token)
      attributes.pointer(8, token)
      attributes.pointer(16, keys)
      attributes.pointer(24, values)
      attributes.u32(32, size)
      attributes.u32(36, map.fd)
    })
    const got = bpf.answer.readUInt32LE(32)
    if (result === -enospc) {
      // One bucket holds more rows than the buffer: the same place again with more room.
      size *= 2
      keys = Buffer.alloc(size * map.shape.keySize)
      values = Buffer.alloc(size * rowSize(map.shape))
      continue
    }
    if (result !== -enoent) succeed(result, `reading the rows of ${map.shape.name}`)
    if (got > 0) take({ count: got, keys, values })
    // Fewer rows than asked for are not the end: only ENOENT is.
    if (result === -enoent) return
    isFirst = false
  }
}

export function updateBatch(bpf: Bpf, map: BpfMap, rows: Rows, step?: string): void {
  let done = 0
  while (done < rows.count) {
    const keys = rows.keys.subarray(done * map.shape.keySize)
    const values = rows.values.subarray(done * rowSize(map.shape))
    const result = bpf.call('updateBatch', step ?? `update ${map.shape.name}`, (attributes) => {
      attributes.pointer(16, keys)
      attributes.pointer(24, values)
      attributes.u32(32, rows.count - done)
      attributes.u32(36, map.fd)
      attributes.u64(elementFlags, 0n)
    })
    succeed(result, `writing ${rows.count} rows of ${map.shape.name}`)
    done += bpf.answer.readUInt32LE(32)
  }
}
