/** The embedded database's directory: one opener, nothing lost at a reopening, and what will not open set aside. */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openStore } from '#store/open-store'
import { allFlows, egress, ingest, noon } from './story'

const folder = mkdtempSync(join(tmpdir(), 'portolan-store-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('a second opener is refused and told who has it; after the first has closed, everything is there', async () => {
  const data = join(folder, 'flows')
  const store = await openStore({ data })
  await ingest(store, [egress('8.8.8.8', noon)])
  const refusal = await openStore({ data }).catch((error: unknown) => error)
  expect(refusal).toMatchObject({ code: 'data-directory-locked' })
  expect(String(refusal)).toContain(`process ${process.pid} on ${hostname()}`)
  expect(String(refusal)).toContain(data)
  await store.close()
  const again = await openStore({ data })
  expect(await allFlows(again)).toHaveLength(1)
  expect(again.notices.join(' ')).toContain('power cut')
  await again.close()
  expect(readdirSync(folder)).toEqual(['flows'])
})

test('the lock of a process that is no more is taken over, that of one that lives never', async () => {
  const data = join(folder, 'stale')
  const sleeper = spawn('sleep', ['600'])
  const pid = sleeper.pid ?? 0
  writeFileSync(`${data}.lock`, JSON.stringify({ pid, started: '', host: hostname() }))
  await expect(openStore({ data })).rejects.toMatchObject({ code: 'data-directory-locked' })
  const ended = new Promise((resolve) => sleeper.once('exit', resolve))
  sleeper.kill('SIGKILL')
  await ended
  const store = await openStore({ data })
  await store.close()
})

test('a lock of this very number, of a process that started at another time, is stale: containers begin at 1', async () => {
  const data = join(folder, 'container')
  writeFileSync(`${data}.lock`, JSON.stringify({ pid: process.pid, started: '1', host: hostname() }))
  const store = await openStore({ data })
  await store.close()
})

test('a directory that does not open is moved aside and said, and an empty one begun', async () => {
  const data = join(folder, 'broken')
  const store = await openStore({ data })
  await ingest(store, [egress('8.8.8.8', noon)])
  await store.close()
  truncateSync(join(data, 'global', 'pg_control'), 10)
  const again = await openStore({ data })
  expect(await allFlows(again)).toEqual([])
  expect(again.notices[0]).toMatch(/did not open .* it was moved to .*broken\.unreadable-/)
  await again.close()
  expect(readdirSync(folder).filter((name) => name.startsWith('broken.unreadable-'))).toHaveLength(1)
})

test('what is not ours is neither written to nor moved aside', async () => {
  const foreign = join(folder, 'foreign')
  const holdings: Readonly<Record<string, readonly string[]>> = {
    letters: ['letter.txt'],
    kustomize: ['base/deployment.yaml', 'overlays/shop/kustomization.yaml'],
    server: ['PG_VERSION', 'base/1/112', 'postmaster.opts'],
    older: ['PG_VERSION', 'base/1/112'],
  }
  for (const [name, files] of Object.entries(holdings)) {
    const directory = join(foreign, name)
    for (const file of files) {
      mkdirSync(dirname(join(directory, file)), { recursive: true })
      writeFileSync(join(directory, file), file === 'PG_VERSION' ? (name === 'older' ? '15\n' : '18\n') : '')
    }
    const before = readdirSync(directory, { recursive: true })
    await expect(openStore({ data: directory }), name).rejects.toMatchObject({ code: 'database-refused' })
    expect(readdirSync(directory, { recursive: true })).toEqual(before)
  }
  const file = join(foreign, 'letters', 'letter.txt')
  await expect(openStore({ data: file })).rejects.toMatchObject({ code: 'database-refused' })
  await expect(openStore({ data: join(file, 'below') })).rejects.toMatchObject({ code: 'database-refused' })
  expect(readdirSync(foreign).sort()).toEqual(Object.keys(holdings).sort())
})
