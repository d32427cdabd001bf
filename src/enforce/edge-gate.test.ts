/** The gate of an edge link, condition by condition. */
import { expect, test } from 'vitest'
import type { Meta } from '#model/meta'
import type { EdgeAttachment, EdgeService } from '#model/traffic-policy'
import { whyGateIsClosed } from './edge-gate'

function meta(kind: string, namespace: string, name: string, more: Partial<Meta> = {}): Meta {
  const origin = { file: 'edge.yaml' }
  return { kind, namespace, name, labels: {}, annotations: {}, ownerReferences: [], origin, assumed: [], ...more }
}

const lastTransitionTime = '2026-10-15T12:00:00Z'
const admitted = { type: 'Admitted', status: 'True', reason: 'Granted', message: '', lastTransitionTime } as const

const link: EdgeAttachment = {
  meta: meta('EdgeAttachment', 'provider', 'link'),
  generation: 1,
  spec: { serviceRef: { namespace: 'tenant', name: 'dns' }, providerRef: { name: 'resolver' } },
  status: { conditions: [admitted] },
  problems: [],
}
const service: EdgeService = {
  meta: meta('EdgeService', 'tenant', 'dns', { uid: 'u1' }),
  generation: 1,
  spec: { providerRef: { namespace: 'provider', name: 'resolver' }, vpcRef: { name: 'blue' } },
  problems: [],
}

test('it is open for an admitted link of the provider that the service grants', () => {
  expect(whyGateIsClosed(link, service)).toBeUndefined()
  const { spec: _, ...refused } = link
  expect(whyGateIsClosed(refused, service)).toBe(
    'EdgeAttachment provider/link cannot be read: it has no spec; write one',
  )
  const problems = [{ path: 'spec.providerRef', message: 'it is missing', hint: 'name the provider' }]
  expect(whyGateIsClosed({ ...refused, problems }, service)).toBe(
    'EdgeAttachment provider/link cannot be read: spec.providerRef: it is missing; name the provider',
  )
})

test('it is closed until Admitted is True, and not by another word for it', () => {
  const conditions = (status: 'False' | 'Unknown') => ({ ...link, status: { conditions: [{ ...admitted, status }] } })
  for (const one of [conditions('False'), conditions('Unknown'), { ...link, status: {} }]) {
    expect(whyGateIsClosed(one, service)).toBe(
      'EdgeAttachment provider/link is not Admitted; whoever admits attachments has to set that condition to True',
    )
  }
  const why = { ...link, status: { conditions: [{ ...admitted, status: 'False' as const, message: 'quota' }] } }
  expect(whyGateIsClosed(why, service)).toMatch(/is not Admitted \(quota\); whoever/)
  const { status: _, ...rest } = link
  const unreadStatus = [{ path: 'status.node', message: '7 is no text', hint: 'write text' }]
  expect(whyGateIsClosed({ ...rest, unreadStatus }, service)).toMatch(
    /is not Admitted \(its status cannot be read: status\.node: 7 is no text\)/,
  )
})

test('it is closed for a service that is not there, cannot be read or is being deleted', () => {
  const deletionTimestamp = lastTransitionTime
  expect(whyGateIsClosed(link, undefined)).toBe(
    'there is no EdgeService tenant/dns; create it, or correct the serviceRef of EdgeAttachment provider/link',
  )
  expect(whyGateIsClosed(link, { ...service, meta: { ...service.meta, deletionTimestamp } })).toMatch(
    /is being deleted; delete the attachment as well, or/,
  )
  const { spec: _, ...refused } = service
  expect(whyGateIsClosed(link, refused)).toMatch(/cannot be read/)
})

test('a UID is that of the reference, and that of the admission: either closes it for a successor of the name', () => {
  const named = (uid: string) => ({
    ...link,
    spec: { serviceRef: { namespace: 'tenant', name: 'dns', uid }, providerRef: { name: 'resolver' } },
  })
  expect(whyGateIsClosed(named('u1'), service)).toBeUndefined()
  expect(whyGateIsClosed(named('u2'), service)).toMatch(/another one of that name/)
  const knownAs = (serviceUid: string) => ({ ...link, status: { conditions: [admitted], serviceUid } })
  expect(whyGateIsClosed(knownAs('u1'), service)).toBeUndefined()
  expect(whyGateIsClosed(knownAs('u0'), service)).toMatch(/another one of that name/)
})

test('a provider without a namespace is one of the service’s own', () => {
  const granting = (providerRef: { name: string; namespace?: string }): EdgeService => ({
    ...service,
    spec: { providerRef, vpcRef: { name: 'blue' } },
  })
  expect(whyGateIsClosed(link, granting({ name: 'resolver', namespace: 'other' }))).toBe(
    'EdgeService tenant/dns grants other/resolver, not provider/resolver; correct the providerRef of the service or of the attachment',
  )
  expect(whyGateIsClosed(link, granting({ name: 'resolver' }))).toMatch(/grants tenant\/resolver, not provider/)
  const own = { ...link, meta: meta('EdgeAttachment', 'tenant', 'link') }
  expect(whyGateIsClosed(own, granting({ name: 'resolver' }))).toBeUndefined()
})
