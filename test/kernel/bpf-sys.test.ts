/** bpf(2) itself: kinds of maps, batches with their traps, pins, links and what the kernel says when it refuses. */
import { closeSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { assemble } from '#compile/bpf/assemble'
import { createAssembler } from '#compile/bpf/assembler'
import type { MapShape, MapType } from '#compile/bpf/map-shape'
import { openBpf } from '#kernel/bpf-sys'
import { decodePinName, encodePinName, openPin, pin, repin } from '#kernel/bpffs'
import { countCpus, possibleCpus } from '#kernel/cpus'
import { createLink, detachLink, queryHook, readLink, updateLink } from '#kernel/links'
import { readBatches, updateBatch } from '#kernel/map-batch'
import { closeMap, createMap, lookUp, nextKey, numberKey, readMapShape, remove, rowSize, update } from '#kernel/maps'
import { measureTicksPerSecond, settle } from '#kernel/measure-ticks'
import { insideNamespace } from '#kernel/network-namespace'
import { closeProgram, loadProgram, readProgramInfo } from '#kernel/programs'
import { type BpffsFolder, createBpffsFolder } from './bpffs-folder'
import { describeKernel } from './describe-kernel'
import { createNamespaces, removeNamespaces } from './namespace'
import { mustRun } from './run-command'

const bpf = openBpf()

function shape(type: MapType, fields: Partial<MapShape> = {}): MapShape {
  return { name: `test_${type}`.slice(0, 15), type, keySize: 4, valueSize: 8, maxEntries: 16, ...fields }
}

function constant(verdict: number) {
  const a = createAssembler()
  a.mov(0, verdict)
  a.exit()
  return assemble(a.listing)
}

describeKernel('bpf(2)', () => {
  let folder: BpffsFolder

  beforeAll(() => {
    folder = createBpffsFolder()
  })
  afterAll(() => folder.remove())

  test.each(['hash', 'array', 'lruHash', 'perCpuHash', 'perCpuArray', 'lruPerCpuHash', 'prefixTrie'] as const)(
    'a row of a map of kind %s reads back, on every CPU where each has its own',
    (type) => {
      const map = createMap(bpf, shape(type, type === 'prefixTrie' ? { keySize: 8 } : {}))
      const key = type === 'prefixTrie' ? Buffer.from([32, 0, 0, 0, 10, 0, 0, 1]) : numberKey(3)
      const value = Buffer.alloc(rowSize(map.shape), 7)
      update(bpf, map, key, value)
      expect(lookUp(bpf, map, key)).toEqual(value)
      expect(readMapShape(bpf, map.fd)).toMatchObject({ type, maxEntries: 16 })
      if (!type.toLowerCase().includes('array')) {
        expect(nextKey(bpf, map)).toEqual(key)
        expect([remove(bpf, map, key), remove(bpf, map, key)]).toEqual([true, false])
        expect(lookUp(bpf, map, key)).toBeUndefined()
      }
      closeMap(map)
    },
  )

  test('a map in a map is read as the id of what it holds', () => {
    const inner = createMap(bpf, shape('array', { maxEntries: 1 }))
    for (const type of ['arrayOfMaps', 'hashOfMaps'] as const) {
      const outer = createMap(bpf, shape(type, { valueSize: 4 }), inner)
      update(bpf, outer, numberKey(1), numberKey(inner.fd))
      expect(lookUp(bpf, outer, numberKey(1))?.readUInt32LE()).toBe(readMapShape(bpf, inner.fd).id)
      const other = createMap(bpf, shape('array', { maxEntries: 1, valueSize: 16 }))
      expect(() => update(bpf, outer, numberKey(2), numberKey(other.fd))).toThrow(/two maps differ in size \(EINVAL\)/)
      closeMap(other)
      closeMap(outer)
    }
    closeMap(inner)
  })

  test('batches read and take every row, though one batch is short or one bucket is longer than the batch', () => {
    const map = createMap(bpf, shape('hash', { maxEntries: 20_000 }))
    const keys = Buffer.concat(Array.from({ length: 20_000 }, (_, index) => numberKey(index)))
    updateBatch(bpf, map, { count: 20_000, keys, values: Buffer.alloc(160_000, 1) })
    for (const count of [1, 7, 1024, 20_000]) {
      const seen = new Set<number>()
      readBatches(bpf, map, { count }, (rows) => {
        for (let index = 0; index < rows.count; index++) seen.add(rows.keys.readUInt32LE(4 * index))
      })
      expect(seen.size).toBe(20_000)
    }
    let taken = 0
    readBatches(bpf, map, { count: 1000, isTaken: true }, (rows) => {
      taken += rows.count
    })
    expect(taken).toBe(20_000)
    expect(nextKey(bpf, map)).toBeUndefined()
    closeMap(map)
  })

  test('a full hash says so, and a ring buffer of an odd size too', () => {
    const map = createMap(bpf, shape('hash', { maxEntries: 1 }))
    update(bpf, map, numberKey(1), Buffer.alloc(8))
    expect(() => update(bpf, map, numberKey(2), Buffer.alloc(8))).toThrow(/the table is full .+ \(E2BIG\)/)
    closeMap(map)
    const ring = shape('ringBuffer', { keySize: 0, valueSize: 0, maxEntries: 5000 })
    expect(() => createMap(bpf, ring)).toThrow(/creating the table test_ringBuffer failed: .+ \(EINVAL\)/)
  })

  test('what the verifier refuses is shown with its log and the program around it', () => {
    const a = createAssembler()
    a.load('u64', 0, 5, 0)
    a.exit()
    const load = () => loadProgram(bpf, 'test_refused', assemble(a.listing), () => 0)
    expect(load).toThrow(/loading the program test_refused failed: the verifier or the mount refused it/)
    expect(load).toThrow(/R5 !read_ok[\s\S]+in the program:[\s\S]+0: r0 = \*\(u64\)\(r5 \+ 0\)/)
  })

  test('pins have names without dots, are replaced without a gap, and open again', () => {
    const names = ['a.b', 'a_b', 'tenant/web', 'é', 'plain-1:x']
    expect(names.map((name) => decodePinName(encodePinName(name)))).toEqual(names)
    expect(new Set(names.map(encodePinName)).size).toBe(names.length)
    expect(names.map(encodePinName).join('')).not.toMatch(/[./]/)
    const [one, other] = [createMap(bpf, shape('array')), createMap(bpf, shape('array'))]
    const path = join(folder.path, encodePinName('my.pin'))
    pin(bpf, one.fd, path)
    expect(() => pin(bpf, one.fd, path)).toThrow(/\(EEXIST\)/)
    expect(() => pin(bpf, one.fd, join(folder.path, 'with.dot'))).toThrow(/names that hold no dots;.+\(EPERM\)/)
    repin(bpf, other.fd, path)
    const opened = openPin(bpf, path)
    expect(opened === undefined ? 0 : readMapShape(bpf, opened).id).toBe(readMapShape(bpf, other.fd).id)
    expect(openPin(bpf, `${path}-none`)).toBeUndefined()
    if (opened !== undefined) closeSync(opened)
    for (const map of [one, other]) closeMap(map)
    expect(existsSync(`${path}-new`)).toBe(false)
  })

  test('a link takes another program only in the place of the one that is named', () => {
    const [namespace = ''] = createNamespaces(['links'])
    mustRun(['ip', '-n', namespace, 'link', 'set', 'lo', 'up'])
    insideNamespace(bpf.native, `/run/netns/${namespace}`, () => {
      const programs = [1, 2].map((number) => loadProgram(bpf, `test_${number}`, constant(-number), () => 0))
      const [first, second] = programs
      if (first === undefined || second === undefined) throw new Error('two programs were loaded')
      const link = createLink(bpf, 'egress', first.fd, 1)
      const ids = programs.map(({ fd }) => readProgramInfo(bpf, fd).id)
      expect(readLink(bpf, link)).toMatchObject({ programId: ids[0], interfaceIndex: 1, hook: 'egress' })
      updateLink(bpf, link, second.fd, first.fd)
      expect(queryHook(bpf, 'egress', 1)).toEqual([ids[1]])
      expect(() => updateLink(bpf, link, first.fd, first.fd)).toThrow(/replacing the program of a link failed/)
      updateLink(bpf, link, first.fd)
      detachLink(bpf, link)
      expect(queryHook(bpf, 'egress', 1)).toEqual([])
      closeSync(link)
      for (const program of programs) closeProgram(program)
    })
    removeNamespaces([namespace])
  })

  test('possible CPUs are counted to the last one, with the holes', () => {
    expect(['0', '0-3', '0-3,8', '0,2-5'].map(countCpus)).toEqual([1, 4, 9, 6])
    expect(possibleCpus()).toBeGreaterThan(0)
  })

  test('ticks are measured the same each time, as timeouts of days are counted by them', () => {
    const measured = Array.from({ length: 8 }, () => measureTicksPerSecond(bpf))
    expect(new Set(measured).size).toBe(1)
    expect([242, 258.4, 99.1, 308, 1012, 128.2].map(settle)).toEqual([250, 250, 100, 300, 1000, 128])
  })
})
