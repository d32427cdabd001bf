/** Tests about the house itself: ARCHITECTURE.md says who may import whom, these lines hold it to that. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

type Room = { readonly name: string; readonly floor: number; readonly isPure: boolean }
type File = { readonly path: string; readonly text: string; readonly room: Room | undefined }
type Import = { readonly from: File; readonly name: string; readonly to: string }

const map = read('ARCHITECTURE.md')
const rooms: readonly Room[] = [...map.matchAll(/^\| (\d+) \| (.+?) \| (pure|door) \|/gm)].flatMap(
  ([, floor, names, kind]) =>
    String(names)
      .split(' · ')
      .map((name) => ({ name, floor: Number(floor), isPure: kind === 'pure' })),
)
const purePackages = [
  ...(/Pure rooms may use these npm packages: (.+)\./.exec(map)?.[1] ?? '').matchAll(/`([^`]+)`/g),
].map(([, name]) => name)

function roomOf(path: string): Room | undefined {
  return rooms.find((room) => path.startsWith(`src/${room.name}/`))
}

function filesUnder(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
}

const allFiles: readonly File[] = filesUnder('src').map((path) => ({ path, text: read(path), room: roomOf(path) }))
/** Of the product: tests and what builds values for them are left out. */
const files = allFiles.filter((file) => !/\.test\.ts$|\/support\//.test(file.path))
const importPattern =
  /^\s*(?:import|export)\b(?:[^'";]*?\bfrom)?\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/gm

function importsOf(file: File): readonly Import[] {
  return [...file.text.matchAll(importPattern)].map(([, plain, dynamic]) => {
    const name = String(plain ?? dynamic)
    return { from: file, name, to: resolve(file.path, name) }
  })
}

function resolve(from: string, name: string): string {
  if (name.startsWith('#')) return `src/${name.slice(1)}.ts`
  return name.startsWith('.') ? `${join(dirname(from), name)}.ts` : name
}

const imports = files.flatMap(importsOf)

test('the map in ARCHITECTURE.md names every folder of src', () => {
  expect(rooms.length).toBeGreaterThan(20)
  expect(allFiles.filter((file) => file.room === undefined).map((file) => file.path)).toEqual([])
})

test('imports point down the map, and rooms of one floor do not know each other', () => {
  const wrong = imports.filter(({ from, to }) => {
    const target = roomOf(to)
    return target !== undefined && from.room !== undefined && target !== from.room && target.floor >= from.room.floor
  })
  expect(wrong.map(({ from, name }) => `${from.path} imports ${name}`)).toEqual([])
})

test('every import of our own resolves to a file', () => {
  const paths = new Set(allFiles.map((file) => file.path))
  const lost = imports.filter(({ name, to }) => (name.startsWith('#') || name.startsWith('.')) && !paths.has(to))
  expect(lost.map(({ from, name }) => `${from.path} imports ${name}`)).toEqual([])
})

test('a relative import stays in its room, and a neighbour file is imported by one', () => {
  const wrong = imports.filter(({ from, name, to }) => {
    if (name.startsWith('#')) return dirname(to) === dirname(from.path)
    return name.startsWith('.') && roomOf(to) !== from.room
  })
  expect(wrong.map(({ from, name }) => `${from.path} imports ${name}`)).toEqual([])
})

test('pure rooms reach no node: module and only the packages that ARCHITECTURE.md lists', () => {
  const wrong = imports.filter(({ from, name }) => {
    if (from.room?.isPure !== true || name.startsWith('#') || name.startsWith('.')) return false
    return !purePackages.some((allowed) => name === allowed || name.startsWith(`${allowed}/`))
  })
  expect(wrong.map(({ from, name }) => `${from.path} imports ${name}`)).toEqual([])
})

test('pure rooms have no clock, no randomness and no async', () => {
  const forbidden =
    /\b(Date\.now|new Date\(\)|Math\.random|performance\.now|process\.|setTimeout|async |await |fetch\()/
  const wrong = files.filter((file) => file.room?.isPure === true && forbidden.test(withoutComments(file.text)))
  expect(wrong.map((file) => file.path)).toEqual([])
})

test('every pure room is in the type check without Node', () => {
  const included = JSON.parse(read('tsconfig.pure.json')).include as readonly string[]
  const missing = files.filter(
    (file) => file.room?.isPure === true && !included.some((folder) => file.path.startsWith(`${folder}/`)),
  )
  expect(missing.map((file) => file.path)).toEqual([])
})

test('no file imports itself through others, by value or by type', () => {
  const graph = new Map(files.map((file) => [file.path, importsOf(file).map((one) => one.to)]))
  expect(findCycle(graph)).toEqual([])
})

function findCycle(graph: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const done = new Set<string>()
  const visit = (path: string, above: readonly string[]): readonly string[] => {
    if (above.includes(path)) return [...above.slice(above.indexOf(path)), path]
    if (done.has(path)) return []
    for (const next of graph.get(path) ?? []) {
      const cycle = graph.has(next) ? visit(next, [...above, path]) : []
      if (cycle.length > 0) return cycle
    }
    done.add(path)
    return []
  }
  for (const path of graph.keys()) {
    const cycle = visit(path, [])
    if (cycle.length > 0) return cycle
  }
  return []
}

test('depth never passes src/room/room/file.ts', () => {
  expect(allFiles.map((file) => file.path).filter((path) => path.split('/').length > 4)).toEqual([])
})

test('every file opens with one sentence that says what it holds', () => {
  const wrong = files.filter((file) => !/^(#![^\n]*\n)?\/\*\*[ \n]/.test(file.text))
  expect(wrong.map((file) => file.path)).toEqual([])
})

test('files are named in kebab case, and none is a drawer for everything', () => {
  const bad = /(^|-)(utils?|helpers?|common|misc|shared|types|manager|impl|data)(-|$)/
  const wrong = allFiles.filter(({ path }) => {
    const name =
      path
        .split('/')
        .at(-1)
        ?.replace(/(\.property)?(\.test)?\.ts$/, '') ?? ''
    return !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name) || bad.test(name)
  })
  expect(wrong.map((file) => file.path)).toEqual([])
})

test('no file of the product is longer than 400 lines, no test longer than 600', () => {
  const wrong = allFiles.filter(
    (file) => file.text.split('\n').length - 1 > (file.path.endsWith('.test.ts') ? 600 : 400),
  )
  expect(wrong.map((file) => file.path)).toEqual([])
})

test('doors alone throw failures, and nobody throws a plain error', () => {
  const throwing = files.filter((file) => /\bthrow new Failure\(/.test(file.text) && file.room?.isPure === true)
  const plain = files.filter((file) => /\bthrow new Error\(/.test(file.text) && file.path !== 'src/base/invariant.ts')
  expect([...throwing, ...plain].map((file) => file.path)).toEqual([])
})

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/\/\/.*$/gm, '')
}
