import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { GeneratedPolicy } from '#generate/generate-policies'
import { writePolicies } from './write-policies'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portolan-write-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const policies: readonly GeneratedPolicy[] = ['a.yaml', 'b.yaml', 'c.yaml'].map((fileName) => ({
  namespace: 'shop',
  name: fileName,
  target: { kind: 'Deployment', name: fileName },
  fileName,
  text: `new ${fileName}\n`,
}))

test('a folder is made, and holds the policies and nothing else', () => {
  writePolicies(join(folder, 'deep', 'out'), policies, false)
  expect(readdirSync(join(folder, 'deep', 'out'))).toEqual(['a.yaml', 'b.yaml', 'c.yaml'])
  expect(readFileSync(join(folder, 'deep', 'out', 'b.yaml'), 'utf8')).toBe('new b.yaml\n')
})

test('a file that is there stays, with all others unwritten, until it is forced', () => {
  writeFileSync(join(folder, 'b.yaml'), 'old\n')
  expect(() => writePolicies(folder, policies, false)).toThrow(/has b\.yaml already; add --force/)
  expect(readdirSync(folder)).toEqual(['b.yaml'])
  writePolicies(folder, policies, true)
  expect(readFileSync(join(folder, 'b.yaml'), 'utf8')).toBe('new b.yaml\n')
})

test('what cannot be replaced is told before anything is', () => {
  writeFileSync(join(folder, 'a.yaml'), 'old\n')
  mkdirSync(join(folder, 'c.yaml'))
  expect(() => writePolicies(folder, policies, true)).toThrow(/c\.yaml is no file that could be replaced; name another/)
  expect(readFileSync(join(folder, 'a.yaml'), 'utf8')).toBe('old\n')
  expect(existsSync(join(folder, 'b.yaml'))).toBe(false)
})

test('a folder below a file is refused', () => {
  writeFileSync(join(folder, 'file'), '')
  expect(() => writePolicies(join(folder, 'file'), policies, true)).toThrow(/is a file, where a folder is wanted/)
  expect(() => writePolicies(join(folder, 'file', 'out'), policies, true)).toThrow(
    /cannot be written: .*; name another/,
  )
})
