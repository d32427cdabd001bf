/** Files and folders that are written, broken, replaced, linked and deleted while they are watched. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { watchFiles } from './watch-files'
import type { ObjectsRead, Watch } from './watch-source'

let folder: string
let watch: Watch | undefined
let reads: ObjectsRead[] = []
let told: string[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portolan-watch-'))
  reads = []
  told = []
})
afterEach(() => {
  watch?.close()
  rmSync(folder, { recursive: true, force: true })
})

const policies = (...names: readonly string[]): string =>
  names
    .map(
      (name) =>
        `apiVersion: portolan.dev/v1alpha1\nkind: TrafficPolicy\nmetadata: {namespace: tenant, name: ${name}}\nspec: {rules: []}\n`,
    )
    .join('---\n')
const put = (name: string, text: string): void => writeFileSync(join(folder, name), text)
const names = (): readonly string[] =>
  [...(reads.at(-1)?.cluster.trafficPolicies.keys() ?? [])].map((key) => key.slice(7))

function open(...paths: readonly string[]): void {
  watch = watchFiles(paths.map((path) => join(folder, path)))({
    take: (read) => void reads.push(read),
    tell: (trouble) => void told.push(trouble),
  })
}

async function until(isSo: () => boolean): Promise<void> {
  const end = performance.now() + 10_000
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`in vain: ${names().join()} told ${told.join()}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
const quiet = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 100))

test.each([1, 50])(
  'others that write beside the files every %i ms keep neither a change from being read nor what is wrong from being told',
  async (milliseconds) => {
    mkdirSync(join(folder, 'objects'))
    put('objects/a.yaml', policies('one'))
    open('objects')
    await until(() => names().join() === 'one')
    const noise = setInterval(() => put('noise', 'x'), milliseconds)
    try {
      put('objects/a.yaml', policies('one', 'two'))
      const start = performance.now()
      await until(() => names().join() === 'one,two')
      expect(performance.now() - start).toBeLessThan(1500)
      put('objects/b.json', '{"kind":')
      await until(() => told.length > 0)
      expect(performance.now() - start).toBeLessThan(4000)
      expect(told).toEqual([expect.stringMatching(/b\.json is not used: /)])
    } finally {
      clearInterval(noise)
    }
  },
)

test('a folder is read at first and after each change: written, added, deleted, and in folders below it', async () => {
  put('a.yaml', policies('one'))
  mkdirSync(join(folder, 'below'))
  open('')
  await until(() => names().join() === 'one')
  put('a.yaml', policies('one', 'two'))
  await until(() => names().join() === 'one,two')
  put('below/b.yaml', policies('three'))
  await until(() => names().length === 3)
  mkdirSync(join(folder, 'new'))
  put('new/c.yaml', policies('four'))
  await until(() => names().length === 4)
  rmSync(join(folder, 'a.yaml'))
  await until(() => [...names()].sort().join() === 'four,three')
  expect(reads.every(({ isPartial }) => !isPartial)).toBe(true)
  expect(told).toEqual([])
})

test('what changes nothing is not told again', async () => {
  put('a.yaml', policies('one'))
  put('notes.txt', 'nothing')
  open('')
  await until(() => reads.length === 1)
  put('notes.txt', 'something')
  await quiet()
  watch?.refresh()
  await quiet()
  expect(reads.length).toBe(1)
})

test('a file that is broken, emptied or taken away counts on as it was read last, and is told once', async () => {
  put('a.yaml', policies('one'))
  put('b.yaml', policies('two'))
  open('a.yaml', 'b.yaml')
  await until(() => names().join() === 'one,two')
  put('a.yaml', `${policies('three')}---\nkind: [`)
  await until(() => told.length === 1)
  expect(told[0]).toMatch(/a\.yaml is not used whole: line \d+: .*; what was read of it before counts on/)
  truncateSync(join(folder, 'a.yaml'))
  await until(() => told.length === 2)
  expect(told[1]).toMatch(/a\.yaml is not used: it is empty; .*counts on/)
  rmSync(join(folder, 'a.yaml'))
  await until(() => told.length === 3)
  put('b.yaml', policies('two', 'four'))
  await until(() => names().join() === 'one,two,four')
  expect(reads.at(-1)?.isPartial).toBe(false)
  put('a.yaml', policies('five'))
  await until(() => names().join() === 'five,two,four')
})

test('a pipe in the place of a file, or beside it, keeps nothing from being read', async () => {
  put('sub.yaml', policies('one'))
  mkdirSync(join(folder, 'more'))
  put('more/a.yaml', policies('two'))
  open('sub.yaml', 'more')
  await until(() => names().join() === 'one,two')
  rmSync(join(folder, 'sub.yaml'))
  execFileSync('mkfifo', [join(folder, 'sub.yaml'), join(folder, 'more/pipe.yaml')])
  await until(() => told.length === 1)
  expect(told[0]).toMatch(/sub\.yaml is a pipe or a device now, .*counts on/)
  put('more/a.yaml', policies('three'))
  await until(() => names().join() === 'one,three')
  rmSync(join(folder, 'sub.yaml'))
  put('sub.yaml', policies('four'))
  await until(() => names().join() === 'four,three')
})

test('a link that leads nowhere is told as one', async () => {
  put('a.yaml', policies('one'))
  symlinkSync('nowhere', join(folder, 'lost.yaml'))
  open('')
  await until(() => names().join() === 'one')
  expect(told).toEqual([expect.stringMatching(/lost\.yaml is a link, and there is no file or folder where it leads; /)])
})

test('what was broken from the beginning makes the reading a part, until it can be read', async () => {
  put('a.yaml', `${policies('one')}---\nkind: [`)
  put('b.yaml', 'kind: [')
  put('c.yaml', policies('three'))
  put('d.yaml', 'replicas: 3\n')
  open('')
  await until(() => reads.length === 1)
  expect([names(), reads[0]?.isPartial]).toEqual([['one', 'three'], true])
  expect(told.length).toBe(3)
  put('a.yaml', policies('one'))
  put('b.yaml', policies('two'))
  await until(() => names().length === 3)
  await until(() => reads.at(-1)?.isPartial === false)
})

test('a file that is truncated and written again soon is never read by half, nor told', async () => {
  put('a.yaml', policies('one'))
  open('a.yaml')
  await until(() => names().join() === 'one')
  truncateSync(join(folder, 'a.yaml'))
  await quiet()
  put('a.yaml', policies('two'))
  await until(() => names().join() === 'two')
  await new Promise((resolve) => setTimeout(resolve, 600))
  expect([reads.length, told]).toEqual([2, []])
})

test('a folder as a ConfigMap is mounted: files are links, and one rename replaces all of them', async () => {
  const version = (name: string, text: string): void => {
    mkdirSync(join(folder, name))
    put(`${name}/a.yaml`, text)
  }
  version('..1', policies('one'))
  symlinkSync('..1', join(folder, '..data'))
  symlinkSync('..data/a.yaml', join(folder, 'a.yaml'))
  open('')
  await until(() => names().join() === 'one')
  version('..2', policies('two'))
  symlinkSync('..2', join(folder, '..data_tmp'))
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  await until(() => names().join() === 'two')
})

test('a link to a file elsewhere is followed when that one changes, and a file may be replaced by a rename', async () => {
  const elsewhere = mkdtempSync(join(tmpdir(), 'portolan-elsewhere-'))
  writeFileSync(join(elsewhere, 'real.yaml'), policies('one'))
  symlinkSync(join(elsewhere, 'real.yaml'), join(folder, 'a.yaml'))
  open('a.yaml')
  await until(() => names().join() === 'one')
  writeFileSync(join(elsewhere, 'real.yaml'), policies('two'))
  await until(() => names().join() === 'two')
  writeFileSync(join(elsewhere, 'next'), policies('three'))
  renameSync(join(elsewhere, 'next'), join(elsewhere, 'real.yaml'))
  await until(() => names().join() === 'three')
  rmSync(elsewhere, { recursive: true, force: true })
})

test('a folder that goes away takes nothing with it, and one in its place is watched', async () => {
  mkdirSync(join(folder, 'policies'))
  put('policies/a.yaml', policies('one'))
  open('policies')
  await until(() => names().join() === 'one')
  renameSync(join(folder, 'policies'), join(folder, 'away'))
  await until(() => told.length > 0)
  expect(names()).toEqual(['one'])
  mkdirSync(join(folder, 'policies'))
  put('policies/a.yaml', policies('two'))
  await until(() => names().join() === 'two')
  put('policies/a.yaml', policies('three'))
  await until(() => names().join() === 'three')
})

test('what does not fit in beside what was read is left out and told, and read once there is room', async () => {
  const size = policies('a').length
  watch = watchFiles([folder], { mostBytes: 3 * size })({
    take: (read) => void reads.push(read),
    tell: (trouble) => void told.push(trouble),
  })
  put('b.yaml', policies('a'))
  await until(() => names().join() === 'a')
  put('a-huge.yaml', policies(...'cdefghij'))
  await until(() => told.some((one) => /a-huge\.yaml is not used: with it the objects would be more than/.test(one)))
  put('b.yaml', policies('b'))
  await until(() => names().join() === 'b')
  expect(reads.at(-1)?.isPartial).toBe(true)
  writeFileSync(join(folder, 'c.yaml.gz'), gzipSync(policies(...'klmnopqr')))
  await until(() => told.some((one) => /c\.yaml\.gz is not used: with it/.test(one)))
  put('b.yaml', policies(...'stuvwxyz'))
  await until(() => told.some((one) => /b\.yaml is not used: .*; what was read of it before counts on/.test(one)))
  expect(names()).toEqual(['b'])
  for (const name of ['b.yaml', 'c.yaml.gz']) rmSync(join(folder, name))
  put('a-huge.yaml', policies('c', 'd'))
  await until(() => names().join() === 'c,d')
  expect(reads.at(-1)?.isPartial).toBe(false)
})
