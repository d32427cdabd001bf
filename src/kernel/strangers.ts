/** Programs of Portolan on an interface that no pin of this folder knows: of another folder, or of pins that are gone. */
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Failure } from '#base/failure'
import type { Bpf } from './bpf-sys'
import { listPins, withPin } from './bpffs'
import { filterProgram } from './clsact'
import type { Folders } from './datapath-tables'
import { type Hook, queryHook, readLink } from './links'
import { programNameById, readProgramInfo } from './programs'
import { listInterfaces, type NetworkInterface } from './rtnetlink'

type Tools = { readonly bpf: Bpf; readonly folders: Folders }

const hooks: readonly Hook[] = ['ingress', 'egress']

/** What every interface's own program is called. */
export const dispatchName = 'tp_dispatch'

/** By the links on both hooks. The interface is one of the calling thread's network namespace. */
export function hasStrangers(tools: Tools, { index }: Pick<NetworkInterface, 'index'>): boolean {
  const ids = hooks.flatMap((hook) => queryHook(tools.bpf, hook, index))
  if (ids.length === 0) return false
  const known = knownPrograms(tools)
  return ids.some((id) => !known.has(id) && programNameById(tools.bpf, id) === dispatchName)
}

/** The same for a kernel without TCX: our place on the hook tells whose the filter is. */
export function hasStrangeFilter(tools: Tools, name: string, hook: Hook): boolean {
  const id = filterProgram(name, hook)
  return id !== undefined && !knownPrograms(tools).has(id)
}

export function refuseStrangers(name: string): Failure {
  return new Failure('kernel.in-use', whyStrange(name))
}

function whyStrange(name: string): string {
  return `${name} has programs of another datapath, which decide its packets: either it is attached by another --bpffs folder, or their pins are gone with their bpffs; where their agent still runs, mount the bpffs and it pins them again within 5 s, then attach again; else make the interface anew and attach that`
}

/** By its name in the calling thread's network namespace; undefined where it has none, or is not there. */
export function findStrangers(tools: Tools, name: string, ways: 'tcx' | 'clsact'): string | undefined {
  const link = listInterfaces(tools.bpf.native).find((one) => one.name === name)
  if (link === undefined) return undefined
  const isStrange =
    ways === 'tcx' ? hasStrangers(tools, link) : hooks.some((hook) => hasStrangeFilter(tools, link.name, hook))
  return isStrange ? whyStrange(name) : undefined
}

/** Of all versions of the folder, and of what stands aside in it. */
function knownPrograms({ bpf, folders }: Tools): ReadonlySet<number> {
  const folder = dirname(folders.root)
  const roots = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []
  const known = new Set<number>()
  const each = (place: string, idOf: (fd: number) => number): void => {
    for (const name of listPins(place)) {
      const id = withPin(bpf, join(place, name), idOf)
      if (id !== undefined) known.add(id)
    }
  }
  for (const root of roots) {
    each(join(root, 'tp_links'), (fd) => readLink(bpf, fd).programId)
    each(join(root, 'tp_programs'), (fd) => readProgramInfo(bpf, fd).id)
  }
  return known
}
