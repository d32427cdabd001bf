import { expect, test } from 'vitest'
import { hidePasswords, openLog } from './log'

test.each([
  ['postgres://me:secret@db:5432/flows', 'postgres://me:…@db:5432/flows'],
  ['postgres://:secret@db/flows', 'postgres://:…@db/flows'],
  [
    'postgres://db/flows?user=me&password=secret&sslmode=require',
    'postgres://db/flows?user=me&password=…&sslmode=require',
  ],
  ['cannot reach postgres://db/flows?PASSWORD=secret now', 'cannot reach postgres://db/flows?PASSWORD=… now'],
  ['postgres://db/flows', 'postgres://db/flows'],
])('of %s no password is told', (text, shown) => {
  expect(hidePasswords(text)).toBe(shown)
})

test('an error, a token and a query are logged without what is secret in them', () => {
  const lines: string[] = []
  const log = openLog((line) => lines.push(line), 'info')
  log.warn({ err: new Error('postgres://me:secret@db is away') }, 'away')
  log.info({
    token: 'secret',
    headers: { authorization: 'Bearer secret' },
    req: { method: 'GET', url: '/x?token=secret' },
  })
  expect(lines).toHaveLength(2)
  expect(lines.join('')).not.toContain('secret')
})
