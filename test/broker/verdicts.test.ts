/** Verdicts of watched policies: filters and blanks, with rows that were written by hand. */
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import type { VerdictRecord } from '../../src/wire/verdict-record'
import { findPostgres, startPostgres } from '../store/postgres'
import { openBroker } from './running-broker'

const found = findPostgres()

test.skipIf(!found.ok)(
  '32: an empty namespace is cluster-scoped, an empty verdict is any, an unknown one is 400',
  async () => {
    const server = await startPostgres()
    onTestFinished(() => server.remove())
    const broker = await openBroker({ database: server.url() })
    const database = new pg.Client(server.url())
    await database.connect()
    await database.query(`insert into audit_verdicts
      (policy_uid, policy_namespace, policy_name, direction, dst_port, protocol, observed_at, verdict) values
      ('u1', '', 'cluster-wide', 'Ingress', 80, 'TCP', '2026-09-01T00:00:00Z', 'WouldDeny'),
      ('u2', 'shop', 'web', 'Ingress', 80, 'TCP', '2026-09-02T00:00:00Z', 'Allow'),
      ('u2', 'shop', 'web', 'Egress', 53, 'UDP', '2026-09-03T00:00:00.5Z', 'WouldDeny')`)
    await database.end()
    const names = async (query: string): Promise<readonly string[]> =>
      (await broker.read<VerdictRecord[]>(`/audit/verdicts${query}`)).map(
        (one) => `${one.policy_name} ${one.direction}`,
      )
    expect(await names('')).toEqual(['web Egress', 'web Ingress', 'cluster-wide Ingress'])
    expect(await names('?namespace=')).toEqual(['cluster-wide Ingress'])
    expect(await names('?namespace=shop&verdict=')).toEqual(['web Egress', 'web Ingress'])
    expect(await names('?policy=web&direction=Egress')).toEqual(['web Egress'])
    expect(await names('?policy=&verdict=Allow')).toEqual(['web Ingress'])
    expect(await names('?limit=-1')).toHaveLength(1)
    for (const wrong of ['verdict=Maybe', 'direction=Sideways', 'limit=x']) {
      const response = await broker.get(`/audit/verdicts?${wrong}`)
      expect([response.status, await response.json()]).toMatchObject([
        400,
        { errors: [{ field: `query.${wrong.split('=')[0]}` }] },
      ])
    }
    const [first] = await broker.read<VerdictRecord[]>('/audit/verdicts')
    expect(first).toMatchObject({ observed_at: '2026-09-03T00:00:00.500', dst_port: 53, policy_namespace: 'shop' })
    await broker.stop()
  },
)

test('32: until policies are in audit mode there are none', async () => {
  const broker = await openBroker({})
  expect(await broker.read('/audit/verdicts')).toEqual([])
  await broker.stop()
})
