/** Real sockets through a policy that allows one direction: replies, errors and edits follow their connection. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Fault, withFaults } from '#kernel/faults'
import { loadNative } from '#kernel/native'
import {
  allowAll,
  denyAll,
  fallbacksOf,
  hitsOf,
  hostIp,
  hostIp6,
  type Lab,
  openLab,
  pings,
  publish,
  type TestPolicy,
  workloadIp,
  workloadIp6,
} from './datapath-lab'
import { describeKernel } from './describe-kernel'
import { createNamespaces, inside, removeNamespaces } from './namespace'
import { mustRun, runCommand } from './run-command'
import { type Peer, startClient, startServer } from './tcp-peers'

const port = 8080
const allowPort: TestPolicy = {
  uid: 'web',
  entries: [{ protocol: 'tcp', destinationPorts: { from: port, to: port }, action: 'allow', rule: 0 }],
}

describeKernel('connections through the datapath, by TCX', () => connectionsBy([]))
describeKernel('connections through the datapath, by filters of clsact', () => connectionsBy(['no-tcx']))

function connectionsBy(faults: readonly Fault[]): void {
  let lab: Lab
  let server: Peer
  const fallbacks = (direction: 'ingress' | 'egress') => fallbacksOf(lab, direction)

  beforeAll(async () => {
    lab = openLab({ native: withFaults(loadNative(), new Set(faults)) })
    lab.datapath.setMode('enforce')
    publish(lab, 'ingress', denyAll)
    publish(lab, 'egress', allowPort)
    server = await startServer(lab.host, port)
  })
  afterAll(() => {
    server.close()
    lab.close()
  })

  test('a TCP connection lives, is half closed and ends, both families, by one rule of one direction', async () => {
    for (const host of [hostIp, hostIp6]) {
      const before = hitsOf(lab, 'egress', 0)
      const client = startClient(lab.workload, host, port)
      expect(await client.prints('connected')).toBe(true)
      client.say('hello')
      expect(await client.prints('back hello')).toBe(true)
      client.say('END')
      expect(await client.prints('after your FIN')).toBe(true)
      expect(await client.prints('the other end is done')).toBe(true)
      client.close()
      expect(hitsOf(lab, 'egress', 0) - before).toBe(1)
    }
    expect(fallbacks('ingress').established).toBeGreaterThan(5n)
  })

  test('the other direction opens nothing, and another port neither', async () => {
    const denied = hitsOf(lab, 'ingress', 0)
    const workloadServer = await startServer(lab.workload, 9090)
    const client = startClient(lab.host, workloadIp, 9090)
    expect(await client.prints('connected', 1500)).toBe(false)
    expect(hitsOf(lab, 'ingress', 0)).toBeGreaterThan(denied)
    client.close()
    workloadServer.close()
    const other = startClient(lab.workload, hostIp, port + 1)
    expect(await other.prints('error', 1500)).toBe(false)
    other.close()
  })

  test('an edit that denies a live connection drops it at its next packet, and one that allows it lets it live on', async () => {
    const client = startClient(lab.workload, hostIp, port)
    expect(await client.prints('connected')).toBe(true)
    publish(lab, 'egress', { ...allowPort, generation: 2, entries: [{ protocol: 'udp', action: 'allow', rule: 0 }] })
    const before = fallbacks('egress').no_match
    client.say('after the edit')
    expect(await client.prints('back after', 1500)).toBe(false)
    expect(fallbacks('egress').no_match).toBeGreaterThan(before)
    publish(lab, 'egress', { ...allowPort, generation: 3 })
    // TCP sends again what was dropped; that it is evaluated again is one hit.
    expect(await client.prints('back after the edit')).toBe(true)
    publish(lab, 'egress', { ...allowPort, generation: 4 })
    const hits = hitsOf(lab, 'egress', 0)
    client.say('and again')
    expect(await client.prints('back and again')).toBe(true)
    expect(hitsOf(lab, 'egress', 0)).toBe(hits + 1)
    client.close()
  })

  test('a reply is denied at once when an edit denies its connection', async () => {
    publish(lab, 'egress', { ...allowPort, generation: 5 })
    const fresh = await startServer(lab.host, port + 7)
    publish(lab, 'egress', { ...allowPort, generation: 6, entries: [{ protocol: 'tcp', action: 'allow', rule: 0 }] })
    const client = startClient(lab.workload, hostIp, port + 7)
    expect(await client.prints('connected')).toBe(true)
    publish(lab, 'egress', { ...allowPort, generation: 7 })
    const before = fallbacks('ingress').no_match
    fresh.say('from the server')
    expect(await client.prints('from the server', 1200)).toBe(false)
    expect(fallbacks('ingress').no_match).toBeGreaterThan(before)
    client.close()
    fresh.close()
  })

  test('unbinding and binding anew voids connections: a reply is none until the workload speaks', async () => {
    const fresh = await startServer(lab.host, port + 8)
    const tcp: TestPolicy = { uid: 'tcp', entries: [{ protocol: 'tcp', action: 'allow', rule: 0 }] }
    publish(lab, 'egress', tcp)
    const client = startClient(lab.workload, hostIp, port + 8)
    expect(await client.prints('connected')).toBe(true)
    lab.datapath.unbind({ slot: lab.held.slot, direction: 'egress' })
    publish(lab, 'egress', tcp)
    fresh.say('unasked')
    expect(await client.prints('unasked', 1200)).toBe(false)
    client.say('hello')
    expect(await client.prints('back hello')).toBe(true)
    client.close()
    fresh.close()
    publish(lab, 'egress', allowPort)
  })

  test('what audit let pass by a rule goes on in enforce, and what it only did not drop ends', async () => {
    lab.datapath.setMode('audit')
    publish(lab, 'egress', allowPort)
    const inner = await startServer(lab.workload, 9091)
    const allowed = startClient(lab.workload, hostIp, port)
    const denied = startClient(lab.host, workloadIp, 9091)
    expect(await allowed.prints('connected')).toBe(true)
    expect(await denied.prints('connected')).toBe(true)
    lab.datapath.setMode('enforce')
    allowed.say('still here')
    expect(await allowed.prints('back still here')).toBe(true)
    denied.say('and here')
    expect(await denied.prints('back and here', 1200)).toBe(false)
    for (const peer of [allowed, denied, inner]) peer.close()
  })

  test('a connection from before enforce goes on as soon as the end speaks that a rule allows', async () => {
    lab.datapath.setMode('off')
    publish(lab, 'egress', { uid: 'tcp', entries: [{ protocol: 'tcp', action: 'allow', rule: 0 }] })
    const fresh = await startServer(lab.host, port + 9)
    const client = startClient(lab.workload, hostIp, port + 9)
    expect(await client.prints('connected')).toBe(true)
    lab.datapath.setMode('enforce')
    fresh.say('unasked')
    expect(await client.prints('unasked', 1200)).toBe(false)
    client.say('hello')
    expect(await client.prints('back hello')).toBe(true)
    expect(await client.prints('unasked')).toBe(true)
    client.close()
    fresh.close()
  })

  test('a path MTU error reaches the sender as part of its connection', () => {
    const [far = ''] = createNamespaces(['far'])
    mustRun([
      'ip',
      'link',
      'add',
      'far0',
      'netns',
      lab.host,
      'mtu',
      '1280',
      'type',
      'veth',
      'peer',
      'name',
      'eth0',
      'netns',
      far,
    ])
    mustRun(
      ['ip', '-n', far, '-batch', '-'],
      'link set eth0 mtu 1280\naddr add 10.8.0.2/24 dev eth0\naddr add fd08::2/64 dev eth0 nodad\nlink set eth0 up\nroute add default via 10.8.0.1\nroute add default via fd08::1\n',
    )
    mustRun(
      ['ip', '-n', lab.host, '-batch', '-'],
      'addr add 10.8.0.1/24 dev far0\naddr add fd08::1/64 dev far0 nodad\nlink set far0 up\n',
    )
    mustRun(
      inside(lab.host, [
        'sh',
        '-c',
        'echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding',
      ]),
    )
    mustRun(
      ['ip', '-n', lab.workload, '-batch', '-'],
      `route add default via ${hostIp}\nroute add default via ${hostIp6}\n`,
    )
    publish(lab, 'egress', {
      uid: 'icmp',
      entries: [
        { protocol: 'icmp', icmpType: 8, action: 'allow', rule: 0 },
        { protocol: 'icmpv6', icmpType: 128, action: 'allow', rule: 1 },
      ],
    })
    const before = fallbacks('ingress').icmp_error
    expect(pings(lab.workload, '10.8.0.2')).toBe(true)
    const large = runCommand(
      inside(lab.workload, ['ping', '-n', '-M', 'do', '-c', '2', '-i', '0.2', '-W', '1', '-s', '1400', '10.8.0.2']),
    )
    expect(`${large.output} ${large.ok ? '' : large.message}`).toMatch(/mtu ?= ?1280/i)
    const large6 = runCommand(
      inside(lab.workload, ['ping', '-n', '-M', 'do', '-c', '2', '-i', '0.2', '-W', '1', '-s', '1400', 'fd08::2']),
    )
    expect(`${large6.output} ${large6.ok ? '' : large6.message}`).toMatch(/mtu ?= ?1280/i)
    expect(fallbacks('ingress').icmp_error - before).toBeGreaterThanOrEqual(2n)
    // What goes in pieces before the path's MTU is known is told of by its first piece, which quotes a fragment header.
    mustRun(['ip', '-n', lab.workload, '-6', 'route', 'flush', 'cache'])
    const told = fallbacks('ingress').icmp_error
    expect(pings(lab.workload, 'fd08::2', ['-s', '4000'])).toBe(true)
    expect(fallbacks('ingress').icmp_error).toBeGreaterThan(told)
    // Without "do not fragment" the datagram goes in pieces, and its answer comes in pieces.
    expect(pings(lab.workload, '10.8.0.2', ['-s', '4000'])).toBe(true)
    expect(pings(lab.workload, 'fd08::2', ['-s', '4000'])).toBe(true)
    removeNamespaces([far])
  })

  test('neighbours are found though no rule names them', () => {
    mustRun(['ip', '-n', lab.workload, 'neigh', 'flush', 'all'])
    mustRun(['ip', '-n', lab.host, 'neigh', 'flush', 'all'])
    const before = fallbacks('egress').link
    expect(pings(lab.workload, hostIp6)).toBe(true)
    expect(pings(lab.workload, hostIp)).toBe(true)
    expect(fallbacks('egress').link).toBeGreaterThan(before)
    expect(pings(lab.host, workloadIp6)).toBe(false)
    publish(lab, 'ingress', allowAll)
    expect(pings(lab.host, workloadIp6)).toBe(true)
    publish(lab, 'ingress', denyAll)
  })
}
