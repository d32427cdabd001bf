/** How many CPUs the kernel may ever have: per-CPU values come as one slot for each. */
import { readFileSync } from 'node:fs'
import { Failure } from '#base/failure'

const path = '/sys/devices/system/cpu/possible'
let known: number | undefined

export function possibleCpus(): number {
  known ??= countCpus(readList())
  return known
}

/** A list such as `0-3,8`: the last number counts, holes have slots too. */
export function countCpus(list: string): number {
  const numbers = list.match(/\d+/g)?.map(Number) ?? []
  return Math.max(...numbers, 0) + 1
}

function readList(): string {
  try {
    return readFileSync(path, 'latin1')
  } catch (cause) {
    throw new Failure(
      'input.unreadable',
      `${path} could not be read; mount sysfs at /sys in the agent's container`,
      cause,
    )
  }
}
