import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { listFolder } from './list-folder'
import { startProgress } from './progress'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portolan-list-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function touch(...names: readonly string[]): void {
  for (const name of names) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), '')
  }
}

async function list(): Promise<{ files: string[]; ignored: string[] }> {
  const { files, ignored } = await listFolder(folder)
  const short = (paths: readonly string[]) => paths.map((path) => path.slice(folder.length + 1))
  return { files: short(files), ignored: short(ignored) }
}

test('folders and files stand in one order, by name', async () => {
  touch('b.yaml', 'a/2.json', 'a/1.yml', 'c/d/e.yaml.gz', 'Z.yaml')
  expect((await list()).files).toEqual(['Z.yaml', 'a/1.yml', 'a/2.json', 'b.yaml', 'c/d/e.yaml.gz'])
})

test('names decide what is read, in any case; hidden files are left aside, and counted where they look like objects', async () => {
  touch('A.YAML', 'b.JSON', 'c.txt', 'd', 'e.yaml.bak', '.f.yaml', '.git/g.yaml', '.h.yaml/i.yaml', '.profile')
  expect(await list()).toEqual({ files: ['A.YAML', 'b.JSON'], ignored: ['.f.yaml', 'c.txt', 'd', 'e.yaml.bak'] })
})

test('links to files are read as a mounted ConfigMap needs it, and links round in a circle end', async () => {
  touch('..data/web.yaml', 'sub/x.yaml')
  symlinkSync('..data/web.yaml', join(folder, 'web.yaml'))
  symlinkSync('..', join(folder, 'sub/up'))
  expect((await list()).files).toEqual(['sub/x.yaml', 'web.yaml'])
})

test('a link that leads nowhere is listed, so that reading it says so', async () => {
  symlinkSync('nowhere', join(folder, 'lost.yaml'))
  expect((await list()).files).toEqual(['lost.yaml'])
})

test('progress is silent for two seconds, then speaks once a second, and at once before a long step', () => {
  let time = 0
  const said: string[] = []
  const { tell, announce } = startProgress({ now: () => time, say: (sentence) => said.push(`${time} ${sentence}`) })
  for (; time < 4000; time += 400) tell(() => 'told')
  announce('announced')
  tell(() => 'too soon')
  time += 1000
  tell(() => 'told')
  expect(said).toEqual(['2000 told', '3200 told', '4000 announced', '5000 told'])
})

test('pipes are left aside: reading one would never end', async () => {
  touch('a.yaml', 'sub/b.yaml')
  execFileSync('mkfifo', [join(folder, 'pipe.yaml'), join(folder, 'sub/pipe.json')])
  symlinkSync('/dev/zero', join(folder, 'zero.yaml'))
  expect(await list()).toEqual({
    files: ['a.yaml', 'sub/b.yaml'],
    ignored: ['pipe.yaml', 'sub/pipe.json', 'zero.yaml'],
  })
})
