import { expect, test } from 'vitest'
import { buildTokenBook, tokensOfEnvironment } from './tokens'

const long = (letter: string): string => letter.repeat(32)

test('each variable has the scopes of the compatible API', () => {
  const book = buildTokenBook(
    tokensOfEnvironment({
      BROKER_TOKEN_READ: long('r'),
      BROKER_TOKEN_INGEST: long('i'),
      BROKER_TOKEN_ADMIN: long('a'),
      BROKER_TOKEN_SUPPLYCHAIN: long('s'),
      BROKER_AUTH_TOKEN: ` ${long('l')}\n`,
    }),
  )
  expect(book.scopesOf(long('r'))).toEqual(['read'])
  expect(book.scopesOf(long('i'))).toEqual(['ingest', 'read'])
  expect(book.scopesOf(long('a'))).toEqual(['admin', 'ingest', 'read'])
  expect(book.scopesOf(long('s'))).toEqual([])
  expect(book.scopesOf(long('l'))).toEqual(['ingest', 'read'])
  expect(book.scopesOf(long('x'))).toBeUndefined()
  expect(book.isOpen).toBe(false)
})

test('without a token the broker is open', () => {
  expect(buildTokenBook(tokensOfEnvironment({ BROKER_TOKEN_READ: ' ' })).isOpen).toBe(true)
})

test('one token in two places is an error that names both and shows it in neither', () => {
  const twice = () =>
    buildTokenBook(tokensOfEnvironment({ BROKER_TOKEN_READ: long('z'), BROKER_TOKEN_INGEST: long('z') }))
  expect(twice).toThrow(/BROKER_TOKEN_READ and BROKER_TOKEN_INGEST hold the same token/)
  expect(twice).not.toThrow(/zzzz/)
})

test('a short token is told, and one that no header can carry is refused', () => {
  const book = buildTokenBook([{ source: 'BROKER_TOKEN_READ', value: 'short', scopes: ['read'] }])
  expect(book.warnings).toEqual([
    'BROKER_TOKEN_READ has fewer than 16 characters and can be guessed; take a longer one',
  ])
  expect(() => buildTokenBook([{ source: '--token-read', value: 'a b', scopes: ['read'] }])).toThrow(
    /--token-read has characters/,
  )
})
