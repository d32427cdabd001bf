import { expect, test } from 'vitest'
import { filterNames, parseFlowQuery, parseTimeOrAge } from './flow-query'
import { parseLabelRequirements } from './label-requirements'

const now = Date.UTC(2026, 8, 10, 12) * 1000

test('a repeated name is one term of alternatives, different names are different terms, not. turns a term round', () => {
  const { filter, errors } = parseFlowQuery(
    { 'from.namespace': ['shop', 'web'], port: '443', 'not.verdict': 'DROP', other: 'left alone' },
    now,
  )
  expect(errors).toEqual([])
  expect(filter.terms).toEqual([
    {
      anyOf: [
        { field: 'namespace', side: 'from', namespace: 'shop' },
        { field: 'namespace', side: 'from', namespace: 'web' },
      ],
    },
    { anyOf: [{ field: 'port', port: 443 }] },
    { anyOf: [{ field: 'decision', decision: 'DROP' }], isNegated: true },
  ])
})

test.each([
  [{ pod: 'shop/web' }, { field: 'pod', side: 'either', namespace: 'shop', namePrefix: 'web' }],
  [{ 'to.pod': 'web' }, { field: 'pod', side: 'to', namePrefix: 'web' }],
  [{ pod: 'shop/' }, { field: 'pod', side: 'either', namespace: 'shop', namePrefix: '' }],
  [
    { workload: 'shop/deployment/web' },
    { field: 'workload', side: 'either', namespace: 'shop', kind: 'deployment', name: 'web' },
  ],
  [{ workload: 'deployment/web' }, { field: 'workload', side: 'either', kind: 'deployment', name: 'web' }],
  [{ workload: 'web' }, { field: 'workload', side: 'either', name: 'web' }],
  [{ ip: '::ffff:10.0.0.1' }, { field: 'ip', side: 'either', address: '10.0.0.1' }],
  [{ 'from.ip': 'fd00::/8' }, { field: 'cidr', side: 'from', cidr: 'fd00::/8' }],
  [{ protocol: 'udp' }, { field: 'protocol', protocol: 'udp' }],
  [{ direction: 'egress' }, { field: 'direction', direction: 'EGRESS' }],
  [{ peer: 'none' }, { field: 'peer-kind', peerKind: 'none' }],
])('%j is one condition', (query, condition) => {
  expect(parseFlowQuery(query, now)).toMatchObject({ filter: { terms: [{ anyOf: [condition] }] }, errors: [] })
})

test.each([
  [{ port: '70000' }, 'query.port'],
  [{ 'not.from.ip': '10.0.0.0/40' }, 'query.not.from.ip'],
  [{ ip: '010.0.0.1' }, 'query.ip'],
  [{ direction: 'sideways' }, 'query.direction'],
  [{ peer: 'internet' }, 'query.peer'],
  [{ pod: 'a/b/c' }, 'query.pod'],
  [{ workload: '/web' }, 'query.workload'],
  [{ label: 'tier in a' }, 'query.label'],
  [{ namespace: '' }, 'query.namespace'],
  [{ since: 'yesterday' }, 'query.since'],
  [{ until: ['-1h', '-2h'] }, 'query.until'],
])('%j is refused by its field', (query, field) => {
  expect(parseFlowQuery(query, now).errors.map((error) => error.field)).toEqual([field])
})

test('times are points or ages', () => {
  expect(parseTimeOrAge('-15m', now)).toBe(now - 900_000_000)
  expect(parseTimeOrAge('2h', now)).toBe(now - 7_200_000_000)
  expect(parseTimeOrAge('2026-09-10T14:00:00+02:00', now)).toBe(now)
  expect(parseTimeOrAge('2026-09-10', now)).toBeUndefined()
})

test('a label selector is read as kubectl reads it', () => {
  expect(parseLabelRequirements('app=web,tier in (a, b),!canary,env!=dev,team,x notin (y)')).toEqual([
    { key: 'app', operator: 'In', values: ['web'] },
    { key: 'tier', operator: 'In', values: ['a', 'b'] },
    { key: 'canary', operator: 'DoesNotExist', values: [] },
    { key: 'env', operator: 'NotIn', values: ['dev'] },
    { key: 'team', operator: 'Exists', values: [] },
    { key: 'x', operator: 'NotIn', values: ['y'] },
  ])
  for (const wrong of ['', 'a=b,', 'a=b=c', '=b', 'a in b', 'in (a)x'])
    expect(parseLabelRequirements(wrong), wrong).toBeUndefined()
})

test('every filter has its negation, and only an end has sides', () => {
  const names = filterNames().map(({ name }) => name)
  expect(names).toContain('not.from.pod')
  expect(names).not.toContain('from.port')
  expect(new Set(names).size).toBe(names.length)
})
