/** The thread of the embedded database dies under a broker: it says so, ends, and the next one has all that was acknowledged. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { expect, test, vi } from 'vitest'
import { runPortolan } from '../../src/cli/run-portolan'
import { quietIo } from '../run-words'

type Run = { readonly said: Promise<string>; readonly ended: Promise<number>; readonly errors: () => string }

function startBroker(data: string): Run {
  let errors = ''
  let say: (line: string) => void = () => {}
  const said = new Promise<string>((resolve) => {
    say = resolve
  })
  const io = {
    ...quietIo,
    out: (text: string) => say(text),
    err: (text: string) => {
      errors += text
    },
  }
  const ended = runPortolan(['broker', '--data', data, '--listen', '127.0.0.1:0'], io)
  return { said, ended, errors: () => errors }
}

test('a broker whose database thread dies says so and ends; what it acknowledged is there again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-lost-'))
  const threads = new Set<Worker>()
  const post = Worker.prototype.postMessage
  vi.spyOn(Worker.prototype, 'postMessage').mockImplementation(function (this: Worker, ...given) {
    threads.add(this)
    post.apply(this, given)
  })
  try {
    const first = startBroker(join(folder, 'data'))
    const url = /answers on (\S+)/.exec(await first.said)?.[1]
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', namespace: 'shop', uid: 'u1' } }
    const taken = await fetch(`${url}/pod/spec`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        pod_name: 'a',
        pod_namespace: 'shop',
        pod_ip: '10.0.0.1',
        node_name: 'n1',
        is_dead: false,
        time_stamp: '2026-07-23T10:00:00Z',
        pod_obj: pod,
      }),
    })
    expect(taken.ok).toBe(true)
    const dead = [...threads]
    threads.clear()
    await Promise.all(dead.map((thread) => thread.terminate()))
    expect(await first.ended).toBe(2)
    expect(first.errors()).toMatch(
      /portolan: the embedded database has ended: .*; what was acknowledged is kept, start the broker again\n$/,
    )

    const second = startBroker(join(folder, 'data'))
    const again = /answers on (\S+)/.exec(await second.said)?.[1]
    const pods = await (await fetch(`${again}/pod/info`)).text()
    expect(pods).toContain('"10.0.0.1"')
    await Promise.all([...threads].map((thread) => thread.terminate()))
    expect(await second.ended).toBe(2)
  } finally {
    vi.restoreAllMocks()
    rmSync(folder, { recursive: true, force: true })
  }
})
