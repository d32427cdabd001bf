/** One interface attached by a process that then ends: what a CNI chain or an edge calls before link-up. */
import type { EnforcedMode } from '#compile/traffic-policy/datapath-maps'
import { openAttacher } from './datapath'
import { type AttachRequest, findInterface, type HeldInterface } from './datapath-interfaces'
import { loadNative, type Native } from './native'
import { checkPreflight } from './preflight'

export type AttachOnce = AttachRequest & {
  readonly folder: string
  /** For a datapath whose mode nobody has set yet. */
  readonly startMode?: EnforcedMode
  readonly native?: Native
}

export type Attached = {
  readonly held: HeldInterface
  /** False where it was attached before: the same lifetime goes on. */
  readonly isNew: boolean
  /** Packets may have passed before the programs were there. */
  readonly wasUp: boolean
  readonly hooks: 'tcx' | 'clsact'
  readonly mode: EnforcedMode | undefined
}

/** All that can be known to fail is asked before anything is made. */
export function attachOnce({ folder, startMode, native = loadNative(), ...request }: AttachOnce): Attached {
  const { isUp: wasUp } = findInterface(native, request)
  const { hooks } = checkPreflight({ folder, native })
  const attacher = openAttacher({ folder, native })
  try {
    const before = new Set(attacher.interfaces().map(({ token }) => token))
    if (startMode !== undefined) attacher.startMode(startMode)
    const held = attacher.attach(request)
    return { held, isNew: !before.has(held.token), wasUp, hooks, mode: attacher.mode() }
  } finally {
    attacher.close()
  }
}
