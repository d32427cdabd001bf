import { describe, expect, test } from 'vitest'
import { parseManifestText } from './parse-text'

const pod = (name: string): object => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name } })
const list = (...items: unknown[]): object => ({ apiVersion: 'v1', kind: 'List', items })

/** `Pod a @ items[0]` for each object. */
function objectsIn(value: unknown): string[] {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const { value: objects, refusal } = parseManifestText(text, 'f')
  if (refusal !== undefined) throw new Error(refusal.message)
  return objects.map(({ kind, value: { metadata }, origin: { line, index } }) => {
    const name = metadata instanceof Object && 'name' in metadata ? metadata.name : ''
    return `${kind} ${name} @ ${[line, index].filter((part) => part !== undefined).join(' ')}`
  })
}

const codesIn = (value: unknown): string[] =>
  parseManifestText(typeof value === 'string' ? value : JSON.stringify(value), 'f').findings.map(({ code }) => code)
const refusalOf = (text: string) => parseManifestText(text, 'f').refusal

test('a byte order mark is no part of the text', () => {
  expect(objectsIn(`\ufeff${JSON.stringify(pod('a'))}`)).toEqual(['Pod a @ '])
  expect(objectsIn('\ufeffkind: Pod\nmetadata: {name: a}\n')).toEqual(['Pod a @ 1'])
})

describe('the shapes of JSON', () => {
  test('one object', () => {
    expect(objectsIn(pod('a'))).toEqual(['Pod a @ '])
  })

  test('a List tells the place of each item', () => {
    expect(objectsIn(list(pod('a'), pod('b')))).toEqual(['Pod a @ items[0]', 'Pod b @ items[1]'])
  })

  test('an array', () => {
    expect(objectsIn([pod('a'), pod('b')])).toEqual(['Pod a @ [0]', 'Pod b @ [1]'])
  })

  test('items of a typed list take kind and version from it', () => {
    const slices = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSliceList',
      items: [{ metadata: { name: 's' } }],
    }
    const { value } = parseManifestText(JSON.stringify(slices), 'f')
    expect(value).toMatchObject([{ kind: 'EndpointSlice', apiVersion: 'discovery.k8s.io/v1' }])
  })

  test('a List inside a List is read, with a finding', () => {
    const nested = list(pod('a'), list(pod('b'), [pod('c')]))
    expect(objectsIn(nested)).toEqual(['Pod a @ items[0]', 'Pod b @ items[1].items[0]', 'Pod c @ items[1].items[1][0]'])
    expect(codesIn(nested)).toEqual(['manifest.nested-list'])
  })

  test('lists nested beyond all reason are told, not followed', () => {
    const deep = Array.from({ length: 50 }).reduce<unknown>((inner) => list(inner), pod('a'))
    expect(codesIn(list(pod('b'), deep)).at(-1)).toBe('manifest.nested-list')
  })

  test('JSON Lines and objects one after another tell their lines', () => {
    expect(objectsIn(`${JSON.stringify(pod('a'))}\n${JSON.stringify(pod('b'), null, 1)}\n`)).toEqual([
      'Pod a @ 1',
      'Pod b @ 2',
    ])
  })

  test('kubectl cluster-info dump on standard output: Lists with logs between them', () => {
    const text = [
      JSON.stringify({ kind: 'PodList', apiVersion: 'v1', items: [{ metadata: { name: 'a' } }] }),
      '==== START logs for container c of pod shop/a ====\n{"level": "info"\n==== END logs for container c of pod shop/a ====',
      JSON.stringify({ kind: 'PodList', apiVersion: 'v1', items: [{ metadata: { name: 'b' } }] }),
    ].join('\n')
    expect(objectsIn(text)).toEqual(['Pod a @ 1 items[0]', 'Pod b @ 5 items[0]'])
  })

  test('an empty List is an answer, and told; so is items: null', () => {
    expect(objectsIn(list())).toEqual([])
    expect(objectsIn({ kind: 'PodList', apiVersion: 'v1', items: null })).toEqual([])
    expect(objectsIn('[]')).toEqual([])
    for (const text of ['null', '[]', 'kind: List\nitems: null', '{"kind":"PodList","items":[]}']) {
      expect(parseManifestText(text, 'f').findings).toMatchObject([
        {
          code: 'manifest.no-objects',
          severity: 'warning',
          message: 'there are no objects in it',
          origin: { file: 'f' },
        },
      ])
    }
  })
})

test('Items in another case is told, as its objects are lost', () => {
  const { findings } = parseManifestText(
    JSON.stringify([{ kind: 'PodList', apiVersion: 'v1', Items: [pod('a')] }, pod('b')]),
    'f',
  )
  expect(findings).toMatchObject([{ code: 'manifest.wrong-type', path: 'Items', hint: 'write items' }])
})

test('kinds that end in List but have names are objects, and items that are no list are told', () => {
  const custom = { apiVersion: 'example.org/v1', kind: 'AllowList', metadata: { name: 'a' }, spec: {} }
  expect(objectsIn(custom)).toEqual(['AllowList a @ '])
  expect(codesIn([pod('a'), { apiVersion: 'v1', kind: 'PodList', items: { a: 1 } }])).toEqual(['manifest.wrong-type'])
})

describe('the shapes of YAML', () => {
  test('several documents, each with its line, and a List in one of them', () => {
    const text = 'kind: Pod\nmetadata: {name: a}\n---\nkind: List\nitems:\n- kind: Pod\n  metadata: {name: b}\n'
    expect(objectsIn(text)).toEqual(['Pod a @ 1', 'Pod b @ 6 items[0]'])
  })

  test('YAML flow that is no JSON, and JSON between YAML markers', () => {
    expect(objectsIn('{kind: Pod, metadata: {name: a}}')).toEqual(['Pod a @ 1'])
    expect(objectsIn('{"kind": "Pod", "metadata": {"name": "a"}}\n---\n{"kind": "Pod"}\n')).toEqual([
      'Pod a @ 1',
      'Pod  @ 3',
    ])
  })

  test('Windows line ends', () => {
    expect(objectsIn('kind: Pod\r\nmetadata:\r\n  name: a\r\n---\r\nkind: Pod\r\nmetadata:\r\n  name: b\r\n')).toEqual([
      'Pod a @ 1',
      'Pod b @ 5',
    ])
  })

  test('one broken document is told with its line, and the others are used', () => {
    const text =
      'kind: Pod\nmetadata: {name: a}\n---\nkind: Pod\nmetadata:\n\tname: b\n---\nkind: Pod\nmetadata: {name: c}\n'
    expect(objectsIn(text)).toEqual(['Pod a @ 1', 'Pod c @ 8'])
    expect(parseManifestText(text, 'f').findings).toMatchObject([
      { code: 'manifest.broken-document', severity: 'error', origin: { file: 'f', line: 6 } },
    ])
  })

  test('a list that aliases repeat is walked once', () => {
    const layers = Array.from({ length: 18 }, (_, n) => `l${n + 1}: &l${n + 1} {kind: List, items: [*l${n}, *l${n}]}`)
    const bomb = `l0: &l0 {kind: List, items: [{kind: Pod, metadata: {name: a}}]}\n${layers.join('\n')}\nkind: List\nitems: [*l18]\n`
    expect(objectsIn(bomb)).toHaveLength(1)
  })
})

describe('what is no Kubernetes object', () => {
  test('a map without a kind, a number and a text are told among objects', () => {
    expect(codesIn([pod('a'), { replicas: 3 }, 7, 'x', { metadata: { name: 'b' } }, { kind: 5 }])).toEqual([
      'manifest.not-an-object',
      'manifest.not-an-object',
      'manifest.not-an-object',
      'manifest.no-kind',
      'manifest.no-kind',
    ])
  })

  test('a text that holds only such things is refused as foreign', () => {
    expect(refusalOf('replicas: 3\n')).toEqual({
      reason: 'foreign',
      message:
        'line 1: the map is no Kubernetes object (it has neither kind nor apiVersion); give objects as kubectl get -o yaml or -o json prints them',
    })
    expect(refusalOf('just words')).toMatchObject({ reason: 'foreign' })
  })

  test('what kubectl says in place of objects is told as such', () => {
    expect(refusalOf('Error from server (Forbidden): pods is forbidden\n')?.reason).toBe('broken')
    expect(refusalOf('NAME   READY   STATUS\nweb-0  1/1     Running\n')?.reason).toBe('foreign')
  })

  test('an error that the API server answered is told as such', () => {
    const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', message: 'pods is forbidden' }
    expect(refusalOf(JSON.stringify(status))?.message).toContain('"pods is forbidden"')
  })
})

describe('texts that cannot be read', () => {
  test.each(['', ' \n\t\n'])('an empty text (%j)', (text) => {
    expect(refusalOf(text)).toMatchObject({ reason: 'empty', message: expect.stringMatching(/^it is empty; write/) })
  })

  test('a text of comments', () => {
    expect(refusalOf('# nothing here\n---\n')).toMatchObject({ reason: 'empty' })
  })

  test('every cut of a JSON List is refused, never half used', () => {
    const text = JSON.stringify(list(pod('a'), pod('b')), null, 2)
    for (let length = 1; length < text.length; length++) {
      expect(refusalOf(text.slice(0, length)), text.slice(0, length)).toMatchObject({ reason: 'cut-short' })
    }
  })

  test('the sentence about a cut names line, column and remedy', () => {
    expect(refusalOf('{\n  "kind": "Li')?.message).toBe(
      'the JSON ends too early, at line 2, column 14 (a text in quotes is not closed); write the whole file again',
    )
  })

  test('JSON Lines whose last line is cut', () => {
    expect(refusalOf(`${JSON.stringify(pod('a'))}\n{"kind": "Pod"`)).toMatchObject({ reason: 'cut-short' })
  })

  test('text that is neither JSON nor YAML tells where the JSON breaks', () => {
    expect(refusalOf('{"a": 1 "b": 2}')).toEqual({
      reason: 'broken',
      message: 'it is neither JSON nor YAML: at line 1, column 9, "," or "}" is missing',
    })
  })

  test('YAML of which no document can be read tells line and remedy', () => {
    expect(refusalOf('a:\n\tb: 1\n')).toEqual({
      reason: 'broken',
      message:
        'line 2: this part of the YAML cannot be read: a line is indented with a tab, which YAML forbids; replace the tab with blanks',
    })
  })
})
