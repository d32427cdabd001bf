/** Children at both ends of a TCP connection, each in its namespace, and what they have printed so far. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { endWithUs, inside } from './namespace'

const script = fileURLToPath(new URL('./tcp-peer.mjs', import.meta.url))

export type Peer = {
  readonly say: (line: string) => void
  /** Whether the text is printed within that time. */
  readonly prints: (text: string, milliseconds?: number) => Promise<boolean>
  readonly close: () => void
}

export async function startServer(namespace: string, port: number): Promise<Peer> {
  const peer = start(namespace, ['server', String(port)])
  if (!(await peer.prints('listening'))) throw new Error('the TCP server did not start')
  return peer
}

export function startClient(namespace: string, host: string, port: number): Peer {
  return start(namespace, ['client', host, String(port)])
}

function start(namespace: string, args: readonly string[]): Peer {
  const [program = '', ...rest] = inside(namespace, [process.execPath, script, ...args])
  const child = spawn(program, rest, { stdio: ['pipe', 'pipe', 'inherit'] })
  endWithUs(child)
  let printed = ''
  child.stdout.on('data', (bytes) => {
    printed += String(bytes)
  })
  return {
    say: (line) => void child.stdin.write(`${line}\n`),
    async prints(text, milliseconds = 15_000) {
      for (const end = Date.now() + milliseconds; Date.now() < end; ) {
        if (printed.includes(text)) return true
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      return printed.includes(text)
    },
    close: () => void child.kill('SIGKILL'),
  }
}
