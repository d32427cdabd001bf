/** Reads a BPF ring buffer through shared memory: records that programs wrote, each once, in their order. */
import { kernelFailure } from './bpf-sys'
import type { BpfMap } from './maps'
import type { Mapping, Native } from './native'

const busyBit = 0x80000000
const discardBit = 0x40000000
const headerSize = 8

export type RingReader = {
  /** Calls `take` with each waiting record; the bytes are only good during the call. */
  readonly read: (take: (record: DataView) => void) => number
  readonly close: () => void
}

export function openRing(native: Native, map: BpfMap): RingReader {
  const size = map.shape.maxEntries
  const consumer = mapped(native.mmap(map.fd, native.pageSize, 'read-write', 0))
  // The kernel maps the records twice, one after the other, so that none is torn at the end.
  const producer = mapped(native.mmap(map.fd, native.pageSize + 2 * size, 'read', native.pageSize))
  const consumed = new BigUint64Array(consumer.memory, 0, 1)
  const produced = new BigUint64Array(producer.memory, 0, 1)
  const words = new Int32Array(producer.memory, native.pageSize)

  return {
    read(take) {
      let position = Atomics.load(consumed, 0)
      let count = 0
      while (position < Atomics.load(produced, 0)) {
        const at = Number(position & BigInt(size - 1))
        const header = Atomics.load(words, at / 4) >>> 0
        // A program is still writing this one: it and what follows are read the next time.
        if ((header & busyBit) !== 0) break
        const length = header & ~(busyBit | discardBit)
        if ((header & discardBit) === 0) {
          take(new DataView(producer.memory, native.pageSize + at + headerSize, length))
          count += 1
        }
        position += BigInt((length + headerSize + 7) & ~7)
        Atomics.store(consumed, 0, position)
      }
      return count
    },
    close() {
      consumer.close()
      producer.close()
    },
  }
}

function mapped(result: Mapping | number): Mapping {
  if (typeof result === 'number') throw kernelFailure(-result, 'mapping a ring buffer')
  return result
}
