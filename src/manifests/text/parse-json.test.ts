import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseJson, tryJson } from './parse-json'

describe('JSON texts', () => {
  test('one value has no line of its own', () => {
    expect(parseJson('{"a": [1, 2]}')).toEqual([{ value: { a: [1, 2] } }])
  })

  test('several values tell their lines, whatever stands between them', () => {
    expect(parseJson('{"a": 1}\n\n{"b": 2} {"c": 3}\r\n[4]')).toEqual([
      { value: { a: 1 }, line: 1 },
      { value: { b: 2 }, line: 3 },
      { value: { c: 3 }, line: 3 },
      { value: [4], line: 4 },
    ])
  })

  test('whatever values are written one after another are read back', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue(), { minLength: 2, maxLength: 5 }), (values) => {
        const texts = parseJson(values.map((value) => JSON.stringify(value)).join('\n'))
        const read = 'length' in texts ? texts.map(({ value }) => value) : texts
        // JSON knows no negative zero.
        expect(JSON.stringify(read)).toBe(JSON.stringify(values))
      }),
      { seed: 11, verbose: true },
    )
  })

  test('the logs of a dump may hold anything', () => {
    const logs =
      '==== START logs for container c of pod a/b ====\n}{"x\n==== not an end\n==== END logs for container c of pod a/b ====\n'
    expect(parseJson(`${logs}{"a": 1}\n${logs}${logs}`)).toEqual([{ value: { a: 1 }, line: 5 }])
  })

  test('a dump that ends in the middle of a log is cut short', () => {
    const cut = { place: 'line 3, column 2', reason: 'the log of a container does not end', isCut: true }
    expect(parseJson('{"a": 1}\n==== START logs for container c of pod a/b ====\nx')).toEqual(cut)
  })

  test('what breaks is told by line and column', () => {
    expect(parseJson('{"a": 1}\n{"b": oops}')).toEqual({
      place: 'line 2, column 7',
      reason: 'a value is missing',
      isCut: false,
    })
    expect(parseJson('{"a": 1}\n{"b": 2')).toEqual({
      place: 'line 2, column 8',
      reason: '"," or "}" is missing',
      isCut: true,
    })
  })

  test('a text that is no JSON is nothing to try', () => {
    expect(tryJson('a: 1')).toBeUndefined()
    expect(tryJson('null')).toEqual({ value: null })
  })
})
