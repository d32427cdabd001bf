/** Who a flow’s peer was, over HTTP: the guard, the precedence and the special addresses, each case with its value. */
import { expect, test } from 'vitest'
import type { TrafficRow } from '../../src/wire/traffic-row'
import { describeBroker } from './engines'
import { type FlowWords, flowPost, type PodWords, podPost, servicePost } from './messages'

describeBroker({ settings: { flowRetentionDays: 3650 } }, (broker) => {
  const post = (pod: PodWords): Promise<unknown> => broker().send('/pod/spec', podPost(pod))
  /** Marked dead at a time of the broker’s clock. */
  const die = async (name: string, at: string): Promise<void> => {
    broker().clock.set(at)
    expect(await broker().send('/pod/mark_dead', { pod_name: name })).toBe(1)
    broker().clock.set('2026-09-10T12:00:00')
  }
  /** The row of a flow as the broker stored it. */
  const observe = async (flow: FlowWords): Promise<TrafficRow> => {
    const uuid = crypto.randomUUID()
    expect(await broker().send('/pod/traffic/batch', [flowPost({ ...flow, uuid })])).toBe(1)
    const rows = await broker().read<TrafficRow[]>(`/pod/traffic/${flow.pod ?? 'mysql-0'}`)
    const row = rows.find((one) => one.uuid === uuid)
    if (row === undefined) throw new RangeError(`no row ${uuid}`)
    return row
  }
  const peerOf = async (flow: FlowWords): Promise<string | null> => {
    const { peer_kind, peer_namespace, peer_name } = await observe(flow)
    return peer_kind === null ? null : `${peer_kind} ${peer_namespace}/${peer_name}`
  }
  const nobody = {
    peer_kind: null,
    peer_namespace: null,
    peer_name: null,
    peer_uid: null,
    peer_workload_kind: null,
    peer_workload_name: null,
    peer_resolved_at: null,
  }

  test('1: a pod that started after the flow is never its peer', async () => {
    await post({ name: 'case-1', ip: '10.1.0.1', start: '2026-08-04T09:12:41Z', seen: '2026-09-10T11:59:00' })
    expect(await observe({ pod: 'p1', peer: '10.1.0.1', time: '2026-07-23T10:00:00' })).toMatchObject(nobody)
  })

  test('2: a pod that started at the very time is its peer, one that started a second later is not', async () => {
    await post({ name: 'case-2', ip: '10.1.0.2', start: '2026-08-04T09:12:41Z', seen: '2026-09-10T11:59:00' })
    expect(await peerOf({ pod: 'p2', peer: '10.1.0.2', time: '2026-08-04T09:12:41' })).toBe('pod shop/case-2')
    expect(await peerOf({ pod: 'p2b', peer: '10.1.0.2', time: '2026-08-04T09:12:40' })).toBeNull()
  })

  test('3: a pod whose start is not known is never a peer', async () => {
    await post({ name: 'case-3', ip: '10.1.0.3', seen: '2026-09-10T11:59:00' })
    expect(await peerOf({ pod: 'p3', peer: '10.1.0.3', time: '2026-09-10T11:59:30' })).toBeNull()
  })

  test('4: the living holder comes before a dead one that started later', async () => {
    await post({ name: 'case-4-dead', ip: '10.1.0.4', start: '2026-09-02T00:00:00Z', seen: '2026-09-04T00:00:00' })
    await die('case-4-dead', '2026-09-04T00:01:00')
    await post({ name: 'case-4-alive', ip: '10.1.0.4', start: '2026-08-01T00:00:00Z', seen: '2026-09-10T11:59:00' })
    expect(await peerOf({ pod: 'p4', peer: '10.1.0.4', time: '2026-09-03T00:00:00' })).toBe('pod shop/case-4-alive')
  })

  test('5: of the dead the one that started last before the flow', async () => {
    const dead = { ip: '10.1.0.5', seen: '2026-08-01T00:00:00' }
    await post({ ...dead, name: 'case-5-a', start: '2026-07-01T00:00:00Z' })
    await post({ ...dead, name: 'case-5-b', start: '2026-07-23T09:00:00Z' })
    await post({ ...dead, name: 'case-5-c', start: '2026-07-30T00:00:00Z' })
    for (const name of ['case-5-a', 'case-5-b', 'case-5-c']) await die(name, '2026-08-01T00:01:00')
    await post({ name: 'case-5-now', ip: '10.1.0.5', start: '2026-08-05T00:00:00Z', seen: '2026-09-10T11:59:00' })
    expect(await peerOf({ pod: 'p5', peer: '10.1.0.5', time: '2026-07-23T10:00:00' })).toBe('pod shop/case-5-b')
  })

  test('6: a dead holder must not have been dead when the flow was seen; the very time passes', async () => {
    const start = '2026-07-01T00:00:00Z'
    await post({ name: 'case-6-early', ip: '10.1.0.6', start, seen: '2026-07-23T09:59:59' })
    await die('case-6-early', '2026-07-23T09:59:59')
    expect(await peerOf({ pod: 'p6', peer: '10.1.0.6', time: '2026-07-23T10:00:00' })).toBeNull()
    await post({ name: 'case-6-late', ip: '10.1.1.6', start, seen: '2026-07-23T10:00:00' })
    await die('case-6-late', '2026-07-23T10:00:00')
    expect(await peerOf({ pod: 'p6b', peer: '10.1.1.6', time: '2026-07-23T10:00:00' })).toBe('pod shop/case-6-late')
  })

  test('6, where the sources differ: marked dead later than last seen, it counts until it was marked', async () => {
    await post({ name: 'case-6c', ip: '10.1.2.6', start: '2026-07-01T00:00:00Z', seen: '2026-07-23T09:59:10' })
    await die('case-6c', '2026-07-23T10:00:05')
    expect(await peerOf({ pod: 'p6c', peer: '10.1.2.6', time: '2026-07-23T10:00:00' })).toBe('pod shop/case-6c')
  })

  test('8: of equals the name decides', async () => {
    const equal = { ip: '10.1.0.8', start: '2026-08-01T00:00:00Z', seen: '2026-09-10T11:59:00' }
    await post({ ...equal, name: 'case-8-b' })
    await post({ ...equal, name: 'case-8-a' })
    expect(await peerOf({ pod: 'p8', peer: '10.1.0.8', time: '2026-09-01T00:00:00' })).toBe('pod shop/case-8-a')
  })

  test('9: a pod that the guard rejects does not stand in the way of a Service', async () => {
    await post({ name: 'case-9', ip: '10.1.0.9', start: '2026-08-04T00:00:00Z', seen: '2026-09-10T11:59:00' })
    await broker().send('/svc/spec', servicePost({ name: 'case-9-svc', ip: '10.1.0.9' }))
    expect(await peerOf({ pod: 'p9', peer: '10.1.0.9', time: '2026-07-23T10:00:00' })).toBe('service shop/case-9-svc')
  })

  test('10: a dead pod that passes comes before a Service', async () => {
    await post({ name: 'case-10', ip: '10.1.0.10', start: '2026-07-01T00:00:00Z', seen: '2026-07-24T00:00:00' })
    await die('case-10', '2026-07-24T00:00:10')
    await broker().send('/svc/spec', servicePost({ name: 'case-10-svc', ip: '10.1.0.10' }))
    expect(await peerOf({ pod: 'p10', peer: '10.1.0.10', time: '2026-07-23T10:00:00' })).toBe('pod shop/case-10')
  })

  test('11: a Service has its uid and no workload', async () => {
    await broker().send('/svc/spec', servicePost({ name: 'case-11', ip: '10.1.0.11', uid: 'svc-uid-11' }))
    expect(await observe({ pod: 'p11', peer: '10.1.0.11', time: '2026-07-23T10:00:00' })).toMatchObject({
      peer_kind: 'service',
      peer_namespace: 'shop',
      peer_name: 'case-11',
      peer_uid: 'svc-uid-11',
      peer_workload_kind: null,
      peer_workload_name: null,
      peer_resolved_at: '2026-09-10T12:00:00',
    })
  })

  test('12: of an address that nobody held all seven fields are null', async () => {
    expect(await observe({ pod: 'p12', peer: '203.0.113.12', time: '2026-07-23T10:00:00' })).toMatchObject(nobody)
  })

  test('13: a host-network pod is a node, by the pod’s name and its DaemonSet', async () => {
    await post({
      name: 'cilium-x',
      namespace: 'kube-system',
      ip: '192.168.50.13',
      start: '2026-07-01T00:00:00Z',
      seen: '2026-09-10T11:59:00',
      hostNetwork: true,
      workload: 'DaemonSet/cilium',
    })
    expect(await observe({ pod: 'p13', peer: '192.168.50.13', time: '2026-07-23T10:00:00' })).toMatchObject({
      peer_kind: 'node',
      peer_namespace: 'kube-system',
      peer_name: 'cilium-x',
      peer_workload_kind: 'DaemonSet',
      peer_workload_name: 'cilium',
    })
  })

  test('14: of three host-network pods on a node the newest is taken, in whatever order they came', async () => {
    const pods: readonly PodWords[] = [
      { name: 'case-14-b', ip: '', start: '2026-07-05T00:00:00Z', seen: '2026-09-10T11:59:00', hostNetwork: true },
      { name: 'case-14-a', ip: '', start: '2026-07-05T00:00:00Z', seen: '2026-09-10T11:59:00', hostNetwork: true },
      { name: 'case-14-c', ip: '', start: '2026-07-04T00:00:00Z', seen: '2026-09-10T11:59:00', hostNetwork: true },
    ]
    const orders = [pods, pods.toReversed(), [pods[1], pods[0], pods[2]]] as readonly (readonly PodWords[])[]
    for (const [index, order] of orders.entries()) {
      const ip = `192.168.51.${index}`
      for (const pod of order) await post({ ...pod, ip, namespace: `node-${index}` })
      expect(await peerOf({ pod: `p14-${index}`, peer: ip, time: '2026-07-23T10:00:00' })).toBe(
        `node node-${index}/case-14-a`,
      )
    }
  })

  test('15: whatever a client says of the peer is overwritten', async () => {
    const uuid = crypto.randomUUID()
    const forged = {
      peer_kind: 'pod',
      peer_namespace: 'bank',
      peer_name: 'vault',
      peer_uid: 'x',
      peer_workload_kind: 'Deployment',
    }
    const row = { ...flowPost({ pod: 'p15', peer: '203.0.113.15', time: '2026-07-23T10:00:00', uuid }), ...forged }
    expect(await broker().send('/pod/traffic/batch', [row])).toBe(1)
    const [stored] = await broker().read<TrafficRow[]>('/pod/traffic/p15')
    expect(stored).toMatchObject({ uuid, ...nobody })
  })

  test('16: a dual-stack pod is found by its other address, however that is written', async () => {
    await post({
      name: 'case-16',
      ip: '10.1.0.16',
      ips: ['10.1.0.16', 'fd00::9'],
      start: '2026-07-01T00:00:00Z',
      seen: '2026-09-10T11:59:00',
    })
    expect(await peerOf({ pod: 'p16', peer: 'FD00:0:0:0:0:0:0:9', time: '2026-07-23T10:00:00' })).toBe(
      'pod shop/case-16',
    )
  })

  test('17: an IPv4 address written as IPv6 is that address; ::1 is not 0.0.0.1', async () => {
    await post({ name: 'case-17', ip: '10.1.0.17', start: '2026-07-01T00:00:00Z', seen: '2026-09-10T11:59:00' })
    await post({ name: 'case-17-low', ip: '0.0.0.1', start: '2026-07-01T00:00:00Z', seen: '2026-09-10T11:59:00' })
    const row = await observe({ pod: 'p17', peer: '::ffff:10.1.0.17', time: '2026-07-23T10:00:00' })
    expect(row).toMatchObject({ traffic_in_out_ip: '10.1.0.17', peer_name: 'case-17' })
    const low = await observe({ pod: 'p17b', peer: '::1', time: '2026-07-23T10:00:00' })
    expect(low).toMatchObject({ traffic_in_out_ip: '::1', ...nobody })
  })

  test('18: an address with a zone is stored as it came and belongs to nobody', async () => {
    const row = await observe({ pod: 'p18', peer: 'fe80::1%eth0', time: '2026-07-23T10:00:00' })
    expect(row).toMatchObject({ traffic_in_out_ip: 'fe80::1%eth0', ...nobody })
  })

  test('19: an empty uid is none', async () => {
    await post({
      name: 'case-19',
      ip: '10.1.0.19',
      uid: '',
      start: '2026-07-01T00:00:00Z',
      seen: '2026-09-10T11:59:00',
    })
    const row = await observe({ pod: 'p19', peer: '10.1.0.19', time: '2026-07-23T10:00:00' })
    expect(row).toMatchObject({ peer_name: 'case-19', peer_uid: null })
  })

  test('20: a row keeps the uid and labels of the pod it was stamped with', async () => {
    const pod = { name: 'case-20', ip: '10.1.0.20', seen: '2026-07-24T00:00:00', labels: { tier: 'old' } }
    await post({ ...pod, uid: 'first', start: '2026-07-01T00:00:00Z' })
    const before = await observe({ pod: 'p20', peer: '10.1.0.20', time: '2026-07-23T10:00:00' })
    await post({ ...pod, uid: 'second', start: '2026-07-24T00:00:00Z', labels: { tier: 'new' } })
    const [after] = await broker().read<TrafficRow[]>('/pod/traffic/p20')
    expect(after).toEqual(before)
    const { items } = await broker().read<{ items: { peer: { uid: string; labels: object } }[] }>(
      '/api/v1/flows?pod=db/p20',
    )
    expect(items[0]?.peer).toMatchObject({ uid: 'first', labels: { app: 'case-20', tier: 'old' } })
    expect(items[0]?.peer.labels).not.toHaveProperty('pod-template-hash')
  })

  test('21: one pod name in two namespaces is two pods', async () => {
    const pod = { name: 'case-21', start: '2026-07-01T00:00:00Z', seen: '2026-09-10T11:59:00' }
    await post({ ...pod, namespace: 'left', ip: '10.1.0.21' })
    await post({ ...pod, namespace: 'right', ip: '10.1.1.21' })
    expect(await peerOf({ pod: 'p21', peer: '10.1.0.21', time: '2026-07-23T10:00:00' })).toBe('pod left/case-21')
    expect(await peerOf({ pod: 'p21b', peer: '10.1.1.21', time: '2026-07-23T10:00:00' })).toBe('pod right/case-21')
  })

  test('22: an address with a new owner is a new flow', async () => {
    await post({ name: 'case-22-a', ip: '10.1.0.22', start: '2026-07-01T00:00:00Z', seen: '2026-07-23T11:00:00' })
    const first = await observe({ pod: 'p22', peer: '10.1.0.22', time: '2026-07-23T10:00:00' })
    await die('case-22-a', '2026-07-23T11:00:00')
    await post({ name: 'case-22-b', ip: '10.1.0.22', start: '2026-07-23T12:00:00Z', seen: '2026-07-23T14:00:00' })
    const second = await observe({ pod: 'p22', peer: '10.1.0.22', time: '2026-07-23T13:00:00' })
    expect([first.peer_name, second.peer_name]).toEqual(['case-22-a', 'case-22-b'])
  })

  test('a bare pod has no workload, and its row validates', async () => {
    await post({ name: 'bare', ip: '10.1.0.30', start: '2026-07-01T00:00:00Z', seen: '2026-09-10T11:59:00' })
    const row = await observe({ pod: 'p30', peer: '10.1.0.30', time: '2026-07-23T10:00:00' })
    expect(row).toMatchObject({ peer_kind: 'pod', peer_workload_kind: null, peer_workload_name: null })
  })
})
