import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Expression, matchesAll, matchesSelector } from '#model/selector'
import { type Reading, rootFields } from './fields'
import { selectorAt } from './label-selector'

function parse(selector: unknown) {
  const reading: Reading = { kind: 'Deployment', namespace: 'shop', name: 'web', origin: { file: 'f' }, findings: [] }
  return { selector: selectorAt(rootFields(reading, { selector }), 'selector'), findings: reading.findings }
}

describe('label selectors', () => {
  test('labels and expressions must all match', () => {
    const { selector, findings } = parse({
      matchLabels: { app: 'web' },
      matchExpressions: [{ key: 'track', operator: 'In', values: ['a', 'b'] }],
    })
    if (selector === undefined) throw new Error('the selector was not read')
    expect(findings).toEqual([])
    expect(matchesSelector(selector, { app: 'web', track: 'b', more: 'x' })).toBe(true)
    expect(matchesSelector(selector, { app: 'web', track: 'c' })).toBe(false)
    expect(matchesSelector(selector, { track: 'a' })).toBe(false)
  })

  test('none is not the same as an empty one, which matches all', () => {
    expect(parse(undefined).selector).toBeUndefined()
    const { selector } = parse({})
    expect(selector && matchesSelector(selector, {})).toBe(true)
  })

  test.each([
    ['In', ['a'], { k: 'a' }, true],
    ['In', ['a'], {}, false],
    ['NotIn', ['a'], { k: 'a' }, false],
    ['NotIn', ['a'], {}, true],
    ['Exists', [], { k: '' }, true],
    ['Exists', [], {}, false],
    ['DoesNotExist', [], { k: '' }, false],
    ['DoesNotExist', [], {}, true],
    ['Gt', ['4'], { k: '5' }, true],
    ['Gt', ['4'], { k: '4' }, false],
    ['Lt', ['4'], { k: '3' }, true],
    ['Lt', ['4'], { k: 'x' }, false],
  ] as const)('%s %j on %j: %s', (operator, values, labels, matches) => {
    expect(matchesAll([{ key: 'k', operator, values }], labels)).toBe(matches)
  })

  test('a label that JavaScript knows is missing unless it is there', () => {
    expect(matchesAll([{ key: 'constructor', operator: 'Exists', values: [] }], {})).toBe(false)
  })

  test('In and NotIn are opposites, Exists and DoesNotExist too', () => {
    const labels = fc.dictionary(fc.constantFrom('k', 'l'), fc.constantFrom('a', 'b', ''))
    const opposites = { In: 'NotIn', Exists: 'DoesNotExist' } as const
    fc.assert(
      fc.property(labels, fc.constantFrom('In', 'Exists'), fc.subarray(['a', 'b']), (held, operator, values) => {
        const ask = (asked: Expression['operator']) => matchesAll([{ key: 'k', operator: asked, values }], held)
        expect(ask(operator)).toBe(!ask(opposites[operator]))
      }),
      { seed: 12, verbose: true },
    )
  })

  test('expressions that cannot be read are told', () => {
    const { selector, findings } = parse({
      matchExpressions: [{ key: 'a', operator: 'Like' }, { operator: 'Exists' }, 'x'],
    })
    expect(selector?.matchExpressions).toEqual([])
    expect(findings.map(({ path }) => path)).toEqual([
      'selector.matchExpressions[2]',
      'selector.matchExpressions[0].operator',
    ])
  })
})
