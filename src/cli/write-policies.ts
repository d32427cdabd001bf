/** Writing policies into a folder: all of them or none, and nobody's file is overwritten unasked. */
import { existsSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '#base/failure'
import { listOf } from '#base/text'
import type { GeneratedPolicy } from '#generate/generate-policies'
import { makeFolders } from '#sources/make-folders'
import { reasonOf } from '#sources/system-error'

export function writePolicies(folder: string, policies: readonly GeneratedPolicy[], isForced: boolean): void {
  if (existsSync(folder) && !statSync(folder).isDirectory()) {
    throw new Failure('usage.bad-argument', `--output-dir ${folder} is a file, where a folder is wanted; name another`)
  }
  const there = policies.map(({ fileName }) => fileName).filter((name) => existsSync(join(folder, name)))
  if (there.length > 0 && !isForced) {
    throw new Failure(
      'usage.bad-argument',
      `${folder} has ${listOf(there, 3)} already; add --force to replace what is there, or name another folder`,
    )
  }
  const blocked = there.filter((name) => !statSync(join(folder, name)).isFile())
  if (blocked.length > 0) {
    throw new Failure(
      'usage.bad-argument',
      `${join(folder, listOf(blocked, 3))} is no file that could be replaced; name another folder`,
    )
  }
  const temporary = (name: string): string => join(folder, `.${name}.${process.pid}.part`)
  try {
    makeFolders(folder)
    for (const { fileName, text } of policies) writeFileSync(temporary(fileName), text)
    for (const { fileName } of policies) renameSync(temporary(fileName), join(folder, fileName))
  } catch (error) {
    for (const { fileName } of policies) {
      if (existsSync(temporary(fileName))) rmSync(temporary(fileName))
    }
    throw new Failure(
      'usage.bad-argument',
      `${folder} cannot be written: ${reasonOf(error)}; name another folder`,
      error,
    )
  }
}
