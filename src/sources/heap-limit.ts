/** How much V8 lets this process keep. */
import { getHeapStatistics } from 'node:v8'

/**
 * In bytes. V8's own limit counts its young generation too, which holds nothing for long: three semi-spaces of 64 MiB
 * since Node 24, of 16 before.
 */
export function heapLimit(): number {
  const semiSpace = Number.parseInt(process.versions.node, 10) < 24 ? 16 : 64
  return getHeapStatistics().heap_size_limit - 3 * semiSpace * 1024 * 1024
}
