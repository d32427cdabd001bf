/** A bpffs of this process's own for a suite, in its own folder, unmounted and removed at the end. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openBpf } from '#kernel/bpf-sys'
import { mountBpffs } from '#kernel/bpffs'
import { mustRun, runCommand } from './run-command'

const mounted = new Set<string>()
let isWatching = false

export type BpffsFolder = { readonly path: string; readonly unmount: () => void; readonly remove: () => void }

export function createBpffsFolder(): BpffsFolder {
  if (!isWatching) process.on('exit', () => [...mounted].forEach(removeFolder))
  isWatching = true
  const path = mkdtempSync(join(tmpdir(), 'portolan-bpffs-'))
  mounted.add(path)
  mountBpffs(openBpf(), path)
  return { path, unmount: () => void mustRun(['umount', path]), remove: () => removeFolder(path) }
}

function removeFolder(path: string): void {
  runCommand(['umount', '--lazy', path])
  rmSync(path, { recursive: true, force: true })
  mounted.delete(path)
}
