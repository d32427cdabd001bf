/** The mode of a node as it is reported: what its pinned table says, and whether the kernel can do it. */
import { existsSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Failure } from '#base/failure'
import { datapathMaps, type EnforcedMode, usualSizes } from '#compile/traffic-policy/datapath-maps'
import { type Bpf, openBpf } from './bpf-sys'
import { isOnBpffs, openPin } from './bpffs'
import { openAttacher } from './datapath'
import { foldersOf, readMode, writeMode } from './datapath-tables'
import { type BpfMap, closeMap } from './maps'
import { loadNative, type Native } from './native'
import { checkPreflight, runPreflight } from './preflight'
import { withTurn } from './writer-lock'

export type NodeMode =
  | { readonly mode: EnforcedMode }
  /** Audit or enforce was asked for, and this kernel or process cannot: no protection. */
  | { readonly mode: 'unsupported'; readonly asked: EnforcedMode; readonly reasons: readonly string[] }
  /** The table could not be read. */
  | { readonly mode: 'unknown'; readonly reasons: readonly string[] }

type Place = { readonly folder: string; readonly native?: Native }

/** Makes nothing and changes nothing. */
export function readNodeMode({ folder, native = loadNative() }: Place): NodeMode {
  const asked = readAskedMode(folder, native)
  if (typeof asked !== 'string') return { mode: 'unknown', reasons: [asked.why] }
  if (asked === 'off') return { mode: 'off' }
  // Not of the folder: what is attached decides on, also while its bpffs takes no more.
  const preflight = runPreflight({ native })
  if (preflight.ok) return { mode: asked }
  const { reasons, isOnlyThisProcess } = preflight
  return isOnlyThisProcess ? { mode: 'unknown', reasons } : { mode: 'unsupported', asked, reasons }
}

function readAskedMode(folder: string, native: Native): EnforcedMode | { readonly why: string } {
  try {
    const bpf = openBpf(native)
    const config = openConfig(bpf, folder, 'read')
    if (config === undefined) return { why: explainAbsence(folder) }
    try {
      const mode = readMode(bpf, { config })
      return mode ?? { why: `${folder} holds a mode that this version does not know; set one with portolan agent mode` }
    } finally {
      closeMap(config)
    }
  } catch (error) {
    if (error instanceof Failure) return { why: error.message }
    throw error
  }
}

function openConfig(bpf: Bpf, folder: string, access: 'read' | 'write'): BpfMap | undefined {
  const { config: shape } = datapathMaps(usualSizes)
  const fd = openPin(bpf, join(foldersOf(folder).tables, shape.name), access)
  return fd === undefined ? undefined : { fd, shape }
}

/** By looking for the folders, of which each may be missing or another user's. */
function explainAbsence(folder: string): string {
  try {
    readdirSync(folder)
    readdirSync(foldersOf(folder).tables)
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    if (code === 'EACCES') return `${folder} is another user's, who alone may look into it; run as that user or as root`
  }
  const path = resolve(folder)
  if (existsSync(folder) && !isOnBpffs(path)) {
    return `${folder} is not on a bpffs, so that nothing can be read there; what a running agent holds decides on; mount one (mkdir -p ${path} && mount -t bpf bpf ${path}), or name another folder with --bpffs`
  }
  return existsSync(folder)
    ? `no mode is kept in ${folder} yet, and nothing was attached by it; set one with portolan agent mode`
    : `there is no folder ${folder}; name the one on the bpffs with --bpffs`
}

/** Off needs no ability and is never refused for want of one; the others are, before anything is changed. */
export function setNodeMode({ folder, native = loadNative() }: Place, mode: EnforcedMode): void {
  const bpf = openBpf(native)
  const config = openConfig(bpf, folder, 'write')
  if (config === undefined) {
    checkPreflight({ folder, native })
    const attacher = openAttacher({ folder, native })
    attacher.setMode(mode)
    attacher.close()
    return
  }
  try {
    if (mode !== 'off') checkPreflight({ folder, native })
    withTurn(native, foldersOf(folder).links, () => writeMode(bpf, { config }, mode))
  } finally {
    closeMap(config)
  }
}
