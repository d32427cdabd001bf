/** A folder of status files: a folder for each field manager, and in it a file for each object it speaks of. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '#base/failure'
import { compareText } from '#base/text'
import { trafficPolicyBindingKind } from '#model/traffic-policy-binding-schema'
import { type ConditionPatch, controllerFieldManager, readConditionPatch } from '#wire/condition-patch'
import { readStatusPatch, type StatusPatch } from '#wire/status-file'

export type StatusFolder = {
  /** Of every agent. */
  readonly nodes: readonly StatusPatch[]
  /** Of the controller. */
  readonly conditions: readonly ConditionPatch[]
  /** Files that say nothing that can be used, each as a sentence; the others count. */
  readonly troubles: readonly string[]
}

/** A folder that is not there yet says nothing; one that cannot be looked into is a Failure. */
export function readStatusFolder(folder: string): StatusFolder {
  const nodes: StatusPatch[] = []
  const conditions: ConditionPatch[] = []
  const troubles: string[] = []
  for (const manager of foldersIn(folder)) {
    const isController = manager === controllerFieldManager
    const place = isController ? join(folder, manager) : join(folder, manager, trafficPolicyBindingKind.plural)
    for (const path of filesIn(place)) {
      const value = readJson(path, troubles)
      if (value === undefined) continue
      const reading = isController ? readConditionPatch(value) : readStatusPatch(value)
      if (reading.kind === 'refused') {
        const [problem] = reading.problems
        troubles.push(`${path} is left out: ${problem?.path ?? ''}: ${problem?.message ?? ''}; ${problem?.hint ?? ''}`)
      } else if ('conditions' in reading.patch.status) conditions.push(reading.patch as ConditionPatch)
      else nodes.push(reading.patch as StatusPatch)
    }
  }
  return { nodes, conditions, troubles }
}

function foldersIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
      .sort(compareText)
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return []
    throw unreadable(folder, cause)
  }
}

function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.json'))
      .sort(compareText)
      .map((name) => join(folder, name))
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return []
    throw unreadable(folder, cause)
  }
}

/** A file that goes while it is read is one that is gone. */
function readJson(path: string, troubles: string[]): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    if (codeOf(cause) !== 'ENOENT')
      troubles.push(`${path} is left out: ${reasonOf(cause)}; delete it, and whoever writes it writes it anew`)
    return undefined
  }
}

function unreadable(folder: string, cause: unknown): Failure {
  return new Failure('input.unreadable', `${folder} cannot be read: ${reasonOf(cause)}; check --status`, cause)
}

function codeOf(cause: unknown): string | undefined {
  return (cause as NodeJS.ErrnoException).code
}

function reasonOf(cause: unknown): string {
  return (cause as Error).message
}
