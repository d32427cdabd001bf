/** Frames as they come off a link: VLAN tags that the device takes off or leaves, SCTP, and segments of a large transfer. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { denyAll, fallbacksOf, hitsOf, hostIp, type Lab, openLab, publish, workloadIp } from './datapath-lab'
import { describeKernel } from './describe-kernel'
import { buildFrame } from './frame'
import { inside } from './namespace'
import { printPcap } from './pcap'
import { mustRun } from './run-command'
import { startClient, startServer } from './tcp-peers'

const ends = { sourceMac: '02:00:00:00:00:02', destinationMac: '02:00:00:00:00:01' }

describeKernel('frames of a link through the datapath', () => {
  let lab: Lab
  let folder: string

  beforeAll(() => {
    lab = openLab()
    folder = mkdtempSync(join(tmpdir(), 'portolan-frames-'))
    lab.datapath.setMode('enforce')
    publish(lab, 'ingress', denyAll)
  })
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true })
    lab.close()
  })

  /** From the workload, in this order. */
  const send = (frames: readonly Buffer[]): void => {
    const file = join(folder, 'frames.pcap')
    writeFileSync(file, printPcap(frames))
    mustRun(inside(lab.workload, ['tcpreplay', '--quiet', '--topspeed', '--intf1=eth0', file]))
  }
  const tagged = (frame: Buffer, types: readonly number[]): Buffer => {
    const tags = types.map((type, index) => Buffer.from([type >> 8, type & 0xff, 0, index + 5]))
    return Buffer.concat([frame.subarray(0, 12), ...tags, frame.subarray(12)])
  }

  test('the rules are asked about what is inside one VLAN tag or two, and not inside four', () => {
    publish(lab, 'egress', {
      uid: 'vlan',
      stateful: false,
      entries: [{ protocol: 'udp', destinationPorts: { from: 7, to: 7 }, action: 'allow', rule: 0 }],
    })
    const packet = {
      from: 'eth0',
      protocol: 'udp',
      source: workloadIp,
      destination: hostIp,
      sourcePort: 9,
      destinationPort: 7,
    } as const
    const frame = buildFrame(packet, 1, ends)
    const unsupported = () => fallbacksOf(lab, 'egress').unsupported
    const before = unsupported()
    send([
      frame,
      tagged(frame, [0x8100]),
      tagged(frame, [0x88a8, 0x8100]),
      tagged(frame, [0x88a8, 0x8100, 0x8100, 0x8100]),
    ])
    expect(hitsOf(lab, 'egress', 0)).toBe(3)
    // The device takes the outermost tag off, so that one more than two can be read.
    expect(unsupported() - before).toBe(1n)
  })

  test('SCTP goes by its ports, and its answer by the connection', () => {
    publish(lab, 'egress', {
      uid: 'sctp',
      entries: [{ protocol: 'sctp', destinationPorts: { from: 3868, to: 3868 }, action: 'allow', rule: 0 }],
    })
    const packet = {
      from: 'eth0',
      protocol: 'sctp',
      source: workloadIp,
      destination: hostIp,
      sourcePort: 4000,
    } as const
    const frames = [3868, 3868, 3869].map((destinationPort) => buildFrame({ ...packet, destinationPort }, 1, ends))
    const before = fallbacksOf(lab, 'egress')
    send(frames)
    const after = fallbacksOf(lab, 'egress')
    expect(hitsOf(lab, 'egress', 0)).toBe(1)
    expect([after.established - before.established, after.no_match - before.no_match]).toEqual([1n, 1n])
  })

  test('a large transfer passes whole, and its large segments count as the packets they become', async () => {
    publish(lab, 'egress', { uid: 'large', entries: [{ protocol: 'tcp', action: 'allow', rule: 0 }] })
    const server = await startServer(lab.host, 8080)
    const client = startClient(lab.workload, hostIp, 8080)
    expect(await client.prints('connected')).toBe(true)
    const before = fallbacksOf(lab, 'egress').established
    client.say(`${'x'.repeat(4_000_000)} the end`)
    expect(await client.prints('x the end', 30_000)).toBe(true)
    const packets = Number(fallbacksOf(lab, 'egress').established - before)
    expect(packets).toBeGreaterThan(4_000_000 / 1500)
    expect(hitsOf(lab, 'egress', 0)).toBe(1)
    client.close()
    server.close()
  })
})
