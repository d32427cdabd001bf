/** Status files: written whole, read back, and what happens where a folder cannot be one. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { printConditionPatch } from '#wire/condition-patch'
import { printStatusPatch } from '#wire/status-file'
import { readStatusFolder } from './status-folder'
import { makeStatusFolder, writeStatusFile } from './write-status-file'

const root = mkdtempSync(join(tmpdir(), 'portolan-status-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const object = { namespace: 'tenant', name: 'web-0' }

test('what agents and the controller wrote is read back, each under its own folder, and nothing is left beside it', () => {
  const folder = join(root, 'good')
  const nodes = ['n1', 'n2'].map((node) => printStatusPatch(object, { node, heartbeatTime: '2026-10-15T12:05:00Z' }))
  for (const [at, patch] of nodes.entries()) {
    writeStatusFile(join(folder, `portolan-agent-n${at + 1}/trafficpolicybindings/tenant/web-0.json`), patch)
  }
  const own = printConditionPatch('TrafficPolicy', object, [])
  writeStatusFile(join(folder, 'portolan-controller/trafficpolicies/tenant/web-0.json'), own)
  expect(readStatusFolder(folder)).toEqual({ nodes, conditions: [own], troubles: [] })
  expect(readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.part'))).toEqual(
    [],
  )
})

test('a folder that is not there says nothing; what is no status is told, with the file, and the rest counts', () => {
  expect(readStatusFolder(join(root, 'none'))).toEqual({ nodes: [], conditions: [], troubles: [] })
  const folder = join(root, 'bad')
  const place = join(folder, 'portolan-agent-n1/trafficpolicybindings/tenant')
  mkdirSync(place, { recursive: true })
  writeFileSync(join(place, 'cut.json'), '{"kind":')
  writeFileSync(join(place, 'list.json'), '[]')
  writeFileSync(join(place, 'other.txt'), 'left alone')
  symlinkSync(join(root, 'nowhere'), join(place, 'gone.json'))
  writeStatusFile(join(place, 'web-0.json'), printStatusPatch(object, { node: 'n1' }))
  writeFileSync(join(folder, 'README.json'), 'no folder of a field manager')
  const { nodes, troubles } = readStatusFolder(folder)
  expect(nodes).toHaveLength(1)
  expect(troubles.map((one) => one.replace(`${place}/`, '').split(':')[0])).toEqual([
    'cut.json is left out',
    'list.json is left out',
  ])
})

test('a place that can be no folder is refused with its reason, and is no endless loop', () => {
  const file = join(root, 'file')
  writeFileSync(file, '')
  for (const place of [file, join(file, 'below')]) {
    expect(() => makeStatusFolder(place)).toThrow(/^the status .*file.* cannot be written: E/)
    expect(() => writeStatusFile(join(place, 'a.json'), {})).toThrow(/ cannot be written: E/)
  }
  expect(() => readStatusFolder(file)).toThrow(/cannot be read: ENOTDIR/)
  // The kernel says ENOENT of a folder to be made here, although the folder above is there.
  expect(() => makeStatusFolder('/proc/nope/deeper')).toThrow(/^the status \/proc\/nope\/deeper cannot be written: E/)
})
