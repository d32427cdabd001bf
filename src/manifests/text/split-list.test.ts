import fc from 'fast-check'
import { load } from 'js-yaml'
import { describe, expect, test } from 'vitest'
import { parseDocument } from './parse-document'
import { splitYamlList } from './split-list'

const document = (text: string) => ({ text, line: 1, contentLine: 1 })
const kubectl = `apiVersion: v1
items:
- kind: Pod
  metadata:
    name: a
    annotations:
      note: |
        - not an item

        nor this
- kind: Pod
  spec:
    containers:
    - name: b
# a comment
kind: List
metadata:
  resourceVersion: ""
`

describe('a List in block style', () => {
  test('is cut into its items, each with its line, and a head', () => {
    const list = splitYamlList(document(kubectl))
    expect(list?.items.map(({ line }) => line)).toEqual([3, 11])
    expect(load(list?.head.text ?? '')).toEqual({
      apiVersion: 'v1',
      items: [],
      kind: 'List',
      metadata: { resourceVersion: '' },
    })
  })

  test('reads as it would in one piece', () => {
    for (const text of [
      kubectl,
      kubectl.replaceAll('\n', '\r\n'),
      kubectl.replaceAll(/^(- | {2})/gm, '  $1'),
      kubectl.replace('- kind', '-\n  kind'),
    ]) {
      expect(parseDocument(document(text)).value).toEqual(load(text))
    }
  })

  test('whatever its items hold', () => {
    const value = fc.letrec((tie) => ({
      leaf: fc.oneof(
        fc.string({ unit: fc.constantFrom('a', '-', ' ', ':', '#', '\n', '"', '{', 'items') }),
        fc.integer(),
        fc.constant(null),
      ),
      node: fc.oneof(
        { depthSize: 'small' },
        tie('leaf'),
        fc.array(tie('node'), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom('a', 'items', 'kind'), tie('node'), { maxKeys: 3 }),
      ),
    })).node
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 4 }), (items) => {
        const text = `kind: List\nitems:\n${items.map((item) => `- ${JSON.stringify(item)}\n`).join('')}`
        expect(parseDocument(document(text)).value).toEqual({ kind: 'List', items })
      }),
      { seed: 6, verbose: true },
    )
  })

  test('an item that is broken is told with its line, and the others are used', () => {
    const { value, problems } = parseDocument(document('kind: List\nitems:\n- a: 1\n- b:\n\tc: 2\n- d: 3\n'))
    expect(value).toEqual({ kind: 'List', items: [{ a: 1 }, undefined, { d: 3 }] })
    expect(problems).toMatchObject([{ line: 5, reason: 'a line is indented with a tab, which YAML forbids' }])
  })

  test('items that name one another are read together', () => {
    const text = 'kind: List\nitems:\n- a: &x [1]\n- b: *x\n'
    expect(parseDocument(document(text)).value).toEqual({ kind: 'List', items: [{ a: [1] }, { b: [1] }] })
  })

  test.each([
    'kind: Pod\nmetadata: {name: a}\n',
    'kind: List\nitems: []\n',
    'kind: List\nitems:\n',
    'kind: List\nitems:\n  a: 1\n',
  ])('%j is no such List', (text) => {
    expect(splitYamlList(document(text))).toBeUndefined()
  })

  test('an object that has items but is no List is read in one piece', () => {
    const text = 'kind: Menu\nitems:\n- a\n- b\n'
    expect(parseDocument(document(text))).toEqual({ value: { kind: 'Menu', items: ['a', 'b'] }, problems: [] })
  })
})
