import { describe, expect, test } from 'vitest'
import type { RawRecord } from '../text/raw-object'
import { addressAt, addressesAt, addressesIn, cidrAt, cidrsAt } from './addresses'
import {
  type Fields,
  flagAt,
  hasStatus,
  itemsAt,
  mapAt,
  mapsAt,
  nameAt,
  numberAt,
  portBounds,
  type Reading,
  rootFields,
  textAt,
  textsAt,
  wordAt,
} from './fields'

/** Reads the field `a` of an object, and tells what was said about it. */
function read<T>(a: unknown, reader: (fields: Fields, key: string) => T) {
  const reading: Reading = { kind: 'Pod', namespace: 'shop', name: 'web', origin: { file: 'f' }, findings: [] }
  const value = reader(rootFields(reading, { a } as RawRecord), 'a')
  const said = reading.findings.map(
    ({ path, message, hint }) => `${path}: ${message}${hint === undefined ? '' : `; ${hint}`}`,
  )
  return { value, said, findings: reading.findings }
}

describe('a field that is absent, or null, is no mistake', () => {
  test.each([undefined, null])('%s', (a) => {
    const readers = [
      textAt,
      nameAt,
      flagAt,
      addressAt,
      cidrAt,
      (fields: Fields) => numberAt(fields, 'a', portBounds),
      (fields: Fields) => wordAt(fields, 'a', ['x']),
    ]
    for (const reader of readers) expect(read<unknown>(a, reader)).toMatchObject({ value: undefined, said: [] })
    for (const reader of [itemsAt, mapsAt, textsAt, addressesAt, cidrsAt])
      expect(read<unknown>(a, reader)).toMatchObject({ value: [], said: [] })
    expect(read(a, mapAt)).toMatchObject({ value: { values: {} }, said: [] })
  })
})

describe('text', () => {
  test.each([
    ['x', 'x', []],
    ['', '', []],
    [7, '7', ['a: 7 stands where text is wanted; it is read as "7"; put it in quotes: "7"']],
    [true, 'true', ['a: true stands where text is wanted; it is read as "true"; put it in quotes: "true"']],
    [[], undefined, ['a: a list stands where text is wanted; it is left out']],
    [{}, undefined, ['a: a map stands where text is wanted; it is left out']],
  ])('%j', (a, value, said) => {
    expect(read(a, textAt)).toMatchObject({ value, said })
  })

  test('an empty name is none', () => {
    expect(read('', nameAt)).toMatchObject({ value: undefined, said: [] })
  })

  test('texts of a list', () => {
    expect(read(['x', 7, 'y'], textsAt)).toMatchObject({
      value: ['x', 'y'],
      said: ['a[1]: 7 stands where text is wanted; it is left out'],
    })
  })
})

describe('truth values', () => {
  test.each([
    [true, true, 0],
    [false, false, 0],
    ['true', true, 1],
    ['Yes', true, 1],
    ['off', false, 1],
    ['maybe', undefined, 1],
    [1, undefined, 1],
  ])('%j', (a, value, count) => {
    const { said, ...result } = read(a, flagAt)
    expect(result.value).toBe(value)
    expect(said).toHaveLength(count)
  })
})

describe('numbers', () => {
  const port = (fields: Fields) => numberAt(fields, 'a', portBounds)

  test.each([
    [80, 80, []],
    [65535, 65535, []],
    ['80', 80, ['a: the text "80" is read as 80; write it without quotes']],
    [0, undefined, ['a: 0 is not a port number from 1 to 65535; it is left out']],
    [65536, undefined, ['a: 65536 is not a port number from 1 to 65535; it is left out']],
    ['http', undefined, ['a: "http" is not a port number from 1 to 65535; it is left out']],
    ['1e2', undefined, ['a: "1e2" is not a port number from 1 to 65535; it is left out']],
    [Number.NaN, undefined, ['a: NaN is not a port number from 1 to 65535; it is left out']],
    [true, undefined, ['a: true is not a port number from 1 to 65535; it is left out']],
  ])('%j', (a, value, said) => {
    expect(read(a, port)).toMatchObject({ value, said })
  })
})

describe('words', () => {
  const word = (fields: Fields) => wordAt(fields, 'a', ['Cluster', 'Local'])

  test.each([
    ['Local', 'Local', []],
    ['', undefined, []],
    ['local', 'Local', ['a: "local" is none of Cluster, Local; it is read as Local']],
    ['Locale', undefined, ['a: "Locale" is none of Cluster, Local; it is left out']],
    [1, undefined, ['a: 1 is none of Cluster, Local; it is left out']],
  ])('%j', (a, value, said) => {
    expect(read(a, word)).toMatchObject({ value, said })
  })
})

describe('maps and lists', () => {
  test('entries that are no maps are told and left out, and paths count all entries', () => {
    const names = (fields: Fields) => mapsAt(fields, 'a').map((entry) => textAt(mapAt(entry, 'b'), 'c'))
    expect(read([{ b: { c: 'x' } }, 7, { b: { c: [] } }], names)).toMatchObject({
      value: ['x', undefined],
      said: [
        'a[1]: 7 stands where a map is wanted; it is left out',
        'a[2].b.c: a list stands where text is wanted; it is left out',
      ],
    })
  })

  test('keys with dots and slashes stand in brackets', () => {
    expect(read({ 'app/x': {} }, (fields) => textAt(mapAt(fields, 'a'), 'app/x')).said).toEqual([
      'a["app/x"]: a map stands where text is wanted; it is left out',
    ])
  })

  test('a finding names the object, the file and the field', () => {
    expect(read('x', mapAt).findings).toEqual([
      {
        code: 'manifest.wrong-type',
        severity: 'error',
        message: '"x" stands where a map is wanted; it is left out',
        object: { kind: 'Pod', namespace: 'shop', name: 'web' },
        path: 'a',
        origin: { file: 'f' },
      },
    ])
  })

  test('long texts are shortened, and control characters are written out', () => {
    expect(read('x'.repeat(500), itemsAt).said[0]).toContain(`"${'x'.repeat(57)}…" stands`)
    expect(read('\u001b[31m\n', itemsAt).said[0]).toContain('"\\u001b[31m\\n"')
  })

  test.each([
    [undefined, false],
    [{}, false],
    ['x', false],
    [{ phase: 'Running' }, true],
  ])('status %j tells something: %s', (status, tells) => {
    const reading: Reading = { kind: 'Pod', namespace: '', name: '', origin: { file: 'f' }, findings: [] }
    expect(hasStatus(rootFields(reading, { status }))).toBe(tells)
  })
})

describe('addresses', () => {
  test.each([
    ['10.0.0.1', '10.0.0.1', []],
    ['FD00:0::1', 'fd00::1', []],
    ['', undefined, []],
    [
      '10.0.0.256',
      undefined,
      ['a: "10.0.0.256" is not an IPv4 address: it takes four numbers from 0 to 255; the address is left out'],
    ],
    [
      'fe80::1%eth0',
      undefined,
      ['a: "fe80::1%eth0" carries a zone; the address is left out; write the address without "%…"'],
    ],
    ['web', undefined, ['a: "web" is not an IP address; the address is left out']],
    [10.5, undefined, ['a: 10.5 stands where an IP address is wanted; it is left out']],
  ])('%j', (a, value, said) => {
    expect(read(a, addressAt)).toMatchObject({ value, said })
  })

  test('in a list, and in a list of maps', () => {
    expect(read(['10.0.0.1', '10.0.0.1.1'], addressesAt)).toMatchObject({
      value: ['10.0.0.1'],
      said: [expect.stringMatching(/^a\[1\]: /)],
    })
    expect(
      read([{ ip: '10.0.0.1' }, { ip: 'x' }, {}], (fields) => addressesIn(mapsAt(fields, 'a'), 'ip')),
    ).toMatchObject({
      value: ['10.0.0.1'],
      said: [expect.stringMatching(/^a\[1\]\.ip: /)],
    })
  })

  test.each([
    ['10.0.0.0/8', '10.0.0.0/8', []],
    [' 10.0.0.0/8 ', '10.0.0.0/8', []],
    ['FD00::/8', 'fd00::/8', []],
    [
      '10.1.0.0/8',
      '10.0.0.0/8',
      ['a: "10.1.0.0/8" has bits set beyond its length; it is read as 10.0.0.0/8; write 10.0.0.0/8'],
    ],
    [
      '10.0.0.0',
      undefined,
      ['a: "10.0.0.0" is no IP range, as it has no length; it is left out; write it as ADDRESS/LENGTH'],
    ],
    [
      '10.0.0.0/33',
      undefined,
      ['a: "10.0.0.0/33" is no IP range, as its length is out of range; it is left out; write it as ADDRESS/LENGTH'],
    ],
    [8, undefined, ['a: 8 stands where an IP range is wanted; it is left out']],
  ])('the range %j', (a, value, said) => {
    expect(read(a, cidrAt)).toMatchObject({ value, said })
  })

  test('a range of a bad address tells what is wrong with that', () => {
    expect(read(['010.0.0.0/8'], cidrsAt)).toMatchObject({
      value: [],
      said: [expect.stringContaining('has a part with a leading zero')],
    })
  })
})
