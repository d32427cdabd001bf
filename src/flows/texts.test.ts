/** Addresses, instants, owners and labels, from the texts that they come as. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addressRange, canonicalAddress, canonicalAddresses } from './address'
import { parseInstant, printDay, printInstant, printNaive } from './instant'
import { ownerOf } from './owner'
import { stableLabels } from './stable-labels'

describe('addresses', () => {
  test.each([
    ['FD00:0:0:0:0:0:0:9', 'fd00::9'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['::FFFF:10.0.0.1', '10.0.0.1'],
    ['::ffff:0a00:0001', '10.0.0.1'],
    ['0:0:0:0:0:ffff:10.0.0.1', '10.0.0.1'],
    ['0000:0000::ffff:a00:1', '10.0.0.1'],
    ['::1', '::1'],
    ['::10.0.0.1', '::a00:1'],
    ['::ffff:ffff:ffff', '255.255.255.255'],
    ['2001:db8::ffff:1:2', '2001:db8::ffff:1:2'],
    ['10.0.0.1', '10.0.0.1'],
  ])('cases 16 and 17: %s is %s', (text, canonical) => {
    expect(canonicalAddress(text)).toBe(canonical)
  })

  test.each([
    '',
    'None',
    'fe80::1%eth0',
    '10.0.0.1/32',
    '010.0.0.1',
    ' 10.0.0.1',
    '10.0.0.1 ',
    '::ffff:010.0.0.1',
    '1:2:3',
  ])('case 18: %j is no address and stays as it is', (text) => {
    expect(canonicalAddress(text)).toBe(text)
    expect(addressRange(text)).toBe('not-an-address')
  })

  test('a canonical address is its own canonical form', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
        const canonical = canonicalAddress(text)
        expect(canonicalAddress(canonical)).toBe(canonical)
      }),
      { seed: 4 },
    )
  })

  test('of a pod, blanks and repetitions are dropped and the primary one stays first', () => {
    expect(canonicalAddresses(['10.0.0.9', '', ' ', 'FD00::9', '::ffff:10.0.0.9', 'fd00:0::9'])).toEqual([
      '10.0.0.9',
      'fd00::9',
    ])
  })

  test('cases 64 and 65: private and public', () => {
    for (const text of [
      '10.1.2.3',
      '172.31.0.1',
      '192.168.1.1',
      '100.64.0.1',
      '0.1.2.3',
      '127.0.0.1',
      '169.254.1.1',
      '224.0.0.1',
    ])
      expect([text, addressRange(text)]).toEqual([text, 'private'])
    for (const text of ['::', '::1', 'fc00::1', 'fdff::1', 'fe80::1', 'ff02::1', '255.255.255.255'])
      expect([text, addressRange(text)]).toEqual([text, 'private'])
    for (const text of ['8.8.8.8', '172.32.0.1', '100.128.0.1', '2001:db8::1', '::2', '223.255.255.255'])
      expect([text, addressRange(text)]).toEqual([text, 'internet'])
  })
})

describe('instants', () => {
  test('case 23: an offset, Z and nothing at all', () => {
    const wanted = Date.parse('2026-07-23T10:00:00Z') * 1000
    for (const text of [
      '2026-07-23T12:00:00+02:00',
      '2026-07-23T10:00:00Z',
      '2026-07-23T10:00:00',
      '2026-07-23T12:00:00 02:00',
    ])
      expect([text, parseInstant(text)]).toEqual([text, wanted])
  })

  test.each([
    'yesterday',
    '2026-07-23',
    '1690000000',
    '2026-13-01T00:00:00',
    '2026-02-29T00:00:00',
    '2026-07-23T24:00:00',
    '',
  ])('case 24: %j is no time', (text) => {
    expect(parseInstant(text)).toBeUndefined()
  })

  test('a fraction is kept to the microsecond and printed when there is one', () => {
    const instant = parseInstant('2026-07-23T09:14:02.118377')
    expect(instant).toBe(Date.parse('2026-07-23T09:14:02Z') * 1000 + 118_377)
    expect(printNaive(instant ?? 0)).toBe('2026-07-23T09:14:02.118377')
    expect(printInstant(parseInstant('2026-07-23T09:14:02.5Z') ?? 0)).toBe('2026-07-23T09:14:02.500Z')
    expect(printDay(instant ?? 0)).toBe('2026-07-23')
  })

  test('what is printed is read as the same instant', () => {
    fc.assert(
      fc.property(fc.integer({ min: -62e15, max: 8e15 }), (instant) => {
        expect(parseInstant(printInstant(instant))).toBe(instant)
        expect(parseInstant(printNaive(instant))).toBe(instant)
        expect(parseInstant(printInstant(instant).replace('T', 't'))).toBe(instant)
      }),
      { seed: 4 },
    )
  })

  test('texts with one letter changed are read alike by the quick way and by the pattern, which alone takes a small t', () => {
    const letter = fc.constantFrom(...'0123456789-:.TZ /a')
    const times = fc.tuple(fc.integer({ min: -62e15, max: 8e15 }), fc.nat(26), letter)
    fc.assert(
      fc.property(times, ([instant, place, one]) => {
        const text = printInstant(instant)
        const changed = `${text.slice(0, place)}${one}${text.slice(place + 1)}`
        fc.pre(changed[10] === 'T')
        expect([changed, parseInstant(changed)]).toEqual([changed, parseInstant(changed.replace('T', 't'))])
      }),
      { seed: 4, numRuns: 2000 },
    )
  })
})

describe('owners', () => {
  const owner = (kind: string, name: string) => [{ kind, name, isController: true }]

  test('a ReplicaSet is its Deployment by the hash of the template, and itself without one', () => {
    expect(ownerOf({ owners: owner('ReplicaSet', 'web-7d9f'), labels: { 'pod-template-hash': '7d9f' } })).toEqual({
      kind: 'Deployment',
      name: 'web',
    })
    expect(ownerOf({ owners: owner('ReplicaSet', 'web-7d9f'), labels: {} })).toEqual({
      kind: 'ReplicaSet',
      name: 'web-7d9f',
    })
  })

  test('a Job is its CronJob by the minutes in its name, and itself without them', () => {
    expect(ownerOf({ owners: owner('Job', 'backup-29384756'), labels: {} })).toEqual({
      kind: 'CronJob',
      name: 'backup',
    })
    expect(ownerOf({ owners: owner('Job', 'migrate-1'), labels: {} })).toEqual({ kind: 'Job', name: 'migrate-1' })
  })

  test('the owner of the owner decides where it is known', () => {
    const pod = { owners: owner('Job', 'backup-29384756'), labels: {}, ownersOfOwner: owner('Workflow', 'nightly') }
    expect(ownerOf(pod)).toEqual({ kind: 'Workflow', name: 'nightly' })
  })

  test('any other controller as it is; a bare pod and a static one have none', () => {
    expect(ownerOf({ owners: owner('StatefulSet', 'db'), labels: {} })).toEqual({ kind: 'StatefulSet', name: 'db' })
    expect(ownerOf({ owners: [], labels: {} })).toBeNull()
    expect(ownerOf({ owners: owner('Node', 'worker-1'), labels: {} })).toBeNull()
  })
})

test('case 62: labels of a revision, a replica or a place are not stable', () => {
  const labels = {
    tier: 'front',
    app: 'web',
    'pod-template-hash': 'x',
    'controller-revision-hash': 'x',
    'controller-uid': 'x',
    'job-name': 'x',
    'batch.kubernetes.io/job-name': 'x',
    'batch.kubernetes.io/controller-uid': 'x',
    'statefulset.kubernetes.io/pod-name': 'x',
    'topology.kubernetes.io/zone': 'x',
    'failure-domain.beta.kubernetes.io/region': 'x',
  }
  expect(Object.entries(stableLabels(labels))).toEqual([
    ['app', 'web'],
    ['tier', 'front'],
  ])
})
