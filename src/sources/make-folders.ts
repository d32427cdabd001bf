/** A folder with all above it, made step by step. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Throws what the system says. Node's own recursive mkdir never ends where the system says that a folder is missing which
 * is there, as in /proc.
 */
export function makeFolders(path: string): void {
  const whole = resolve(path)
  if (!existsSync(whole) && dirname(whole) !== whole) makeFolders(dirname(whole))
  try {
    mkdirSync(whole)
  } catch (cause) {
    // Another process was faster; a file in its place shows in what is done next.
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
  }
}
