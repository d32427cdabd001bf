/** A switch for tests: makes chosen steps of the datapath fail as the kernel would fail them. */
import { constants } from 'node:os'
import { Failure } from '#base/failure'
import { commands } from './bpf-sys'
import { loadNative, type Native } from './native'

const faults = {
  /** A kernel before 6.6. */
  'no-tcx': { command: 'linkCreate', step: /./, errno: constants.errno.EINVAL },
  'refused-load': { command: 'programLoad', step: /./, errno: constants.errno.EACCES },
  'no-memory': { command: 'mapCreate', step: /./, errno: constants.errno.ENOMEM },
  'failed-count': { command: 'mapUpdate', step: /^clear counter$/, errno: constants.errno.ENOMEM },
  'failed-create': { command: 'mapCreate', step: /^create tp_snapshot$/, errno: constants.errno.ENOMEM },
  'failed-fill': { command: 'mapUpdate', step: /^fill snapshot$/, errno: constants.errno.ENOMEM },
  'failed-pin': { command: 'pin', step: /tp_snapshots/, errno: constants.errno.ENOSPC },
  'failed-swap': { command: 'mapUpdate', step: /^swap snapshot$/, errno: constants.errno.ENOMEM },
  /** Of many at once, after the first one. */
  'half-swap': { command: 'updateBatch', step: /^swap snapshot$/, errno: constants.errno.ENOMEM },
} as const
const batchCount = 32
export type Fault = keyof typeof faults

export function parseFaults(text: string): readonly Fault[] {
  return text
    .split(',')
    .filter((name) => name !== '')
    .map((name) => {
      if (Object.hasOwn(faults, name)) return name as Fault
      throw new Failure('usage.bad-argument', `"${name}" is not a fault; known are ${Object.keys(faults).join(', ')}`)
    })
}

/** `active` may change while the datapath runs. */
export function withFaults(native: Native, active: ReadonlySet<Fault>): Native {
  return {
    ...native,
    bpf(command, attributes, size, step = '') {
      for (const name of active) {
        const fault = faults[name]
        if (commands[fault.command].number !== command || !fault.step.test(step)) continue
        if (name === 'half-swap') {
          attributes.writeUInt32LE(1, batchCount)
          native.bpf(command, attributes, size, step)
        }
        return -fault.errno
      }
      return native.bpf(command, attributes, size, step)
    },
  }
}

/** The kernel with the faults of that list, which is the value of PORTOLAN_FAULTS; usually it is empty. */
export function nativeOf(text: string): Native {
  const wanted = parseFaults(text)
  return wanted.length === 0 ? loadNative() : withFaults(loadNative(), new Set(wanted))
}
