/** Runs one system tool to its end; its failure is a value that carries what the tool said. */
import { spawnSync } from 'node:child_process'

export type CommandOutcome =
  | { readonly ok: true; readonly output: string }
  | { readonly ok: false; readonly output: string; readonly message: string }

/** Debian keeps the network tools in sbin, which a user's PATH may lack. */
export const toolEnvironment = {
  ...process.env,
  LC_ALL: 'C',
  PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin`,
}

export function runCommand(command: readonly string[], input: string | Buffer = ''): CommandOutcome {
  const [program = '', ...args] = command
  const options = { input, env: toolEnvironment, maxBuffer: 1 << 28, timeout: 120_000 }
  const done = spawnSync(program, args, options)
  const output = done.stdout?.toString() ?? ''
  if (done.status === 0) return { ok: true, output }
  const said = `${done.stderr?.toString().trim() ?? ''} ${done.error?.message ?? ''}`.trim()
  const ending = done.status === null ? `ended by ${done.signal ?? 'its start'}` : `ended with code ${done.status}`
  return { ok: false, output, message: `${command.slice(0, 8).join(' ')} ${ending}: ${said}` }
}

/** For steps of a test's own set-up, where a failure is no answer but a fault. */
export function mustRun(command: readonly string[], input: string | Buffer = ''): string {
  const outcome = runCommand(command, input)
  if (!outcome.ok) throw new Error(outcome.message)
  return outcome.output
}

/** Blocks: the tests of this folder have nothing else to do while the kernel works. */
export function sleep(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
}

/** Asks again every two milliseconds until the answer is yes; says what it waited for when the time is over. */
export function waitUntil(what: string, isSo: () => boolean, milliseconds = 10_000): void {
  const end = Date.now() + milliseconds
  while (!isSo()) {
    if (Date.now() > end) throw new Error(`waited ${milliseconds} ms in vain: ${what}`)
    sleep(2)
  }
}
