import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lineAndColumn, scanJson } from './scan-json'

describe('scanning JSON', () => {
  test('every JSON text is walked to its end, whatever its blanks', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 2, '\t'), (value, space) => {
        const text = JSON.stringify(value, null, space)
        expect(scanJson(` \n${text} `, 0)).toEqual({ end: text.length + 2 })
      }),
      { seed: 1, verbose: true },
    )
  })

  test('every cut of an object is seen as a cut, at the end of the text', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(), (value, place) => {
        const text = JSON.stringify(value)
        const cut = text.slice(0, 1 + (place % (text.length - 1)))
        expect(scanJson(cut, 0)).toMatchObject({ isCut: true, at: cut.length })
      }),
      { seed: 2, verbose: true },
    )
  })

  test('it refuses whatever JSON.parse refuses', () => {
    const nearJson = fc.string({ unit: fc.constantFrom(...'{}[],:"\\01-.eEtrufalsn \n'.split('')), maxLength: 12 })
    fc.assert(
      fc.property(nearJson, (text) => {
        const scan = scanJson(text, 0)
        const isWhole = 'end' in scan && text.slice(scan.end).trim() === ''
        expect(isWhole).toBe(isJson(text))
      }),
      { seed: 3, numRuns: 3000, verbose: true },
    )
  })

  test.each([
    ['{"a": 1,}', 8, 'a key in double quotes is missing'],
    ['{"a" 1}', 5, '":" is missing after a key'],
    ['{"a": 1 "b": 2}', 8, '"," or "}" is missing'],
    ['[1, 2 3]', 6, '"," or "]" is missing'],
    ['[1, ]', 4, 'a value is missing'],
    ['["a\nb"]', 3, 'a text in quotes holds a line break or another control character'],
    ['["\\x"]', 2, 'a backslash begins no known escape'],
    ["{'a': 1}", 1, 'a key in double quotes is missing'],
  ])('%j breaks at %d: %s', (text, at, reason) => {
    expect(scanJson(text, 0)).toEqual({ at, reason, isCut: false })
  })

  test('brackets a hundred thousand deep do not exhaust the stack', () => {
    const deep = '['.repeat(100_000) + ']'.repeat(100_000)
    expect(scanJson(deep, 0)).toEqual({ end: 200_000 })
  })

  test('lines and columns are counted from one', () => {
    expect(lineAndColumn('ab\ncd', 0)).toEqual({ line: 1, column: 1 })
    expect(lineAndColumn('ab\ncd', 4)).toEqual({ line: 2, column: 2 })
  })
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
