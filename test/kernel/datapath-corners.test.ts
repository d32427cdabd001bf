/** Packets at the edges of what the datapath reads, one by one: lengths that lie, quotes with headers before their ports, and what only a link may say. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { configLayout, modeNumbers } from '#compile/traffic-policy/datapath-maps'
import type { Direction, Entry } from '#compile/traffic-policy/entry'
import type { Snapshot } from '#compile/traffic-policy/snapshot'
import { writeConfig } from '#kernel/datapath-tables'
import { type BpffsFolder, createBpffsFolder } from './bpffs-folder'
import { bindAll, type DatapathCase, giveToken, openDatapathCase, snapshotOf } from './datapath-case'
import { describeKernel } from './describe-kernel'
import { createPacketRunner, createSegmentRunner, type PacketRunner, type TestPacket } from './packet-runner'

const slot = 210
const localEnd = 1
const remoteEnd = 2
const router = 9

type Ends = { readonly source: number; readonly destination: number }
const out: Ends = { source: localEnd, destination: remoteEnd }
const back: Ends = { source: remoteEnd, destination: localEnd }

const word = (value: number): readonly number[] => [value >> 8, value & 0xff]
const zeros = (count: number): readonly number[] => Array<number>(count).fill(0)

function ipv4({ source, destination }: Ends, protocol: number, payload: readonly number[], fragment = 0) {
  const length = word(20 + payload.length)
  const addresses = [10, 0, 0, source, 10, 0, 0, destination]
  return [0x45, 0, ...length, 0, 7, ...word(fragment), 64, protocol, 0, 0, ...addresses, ...payload]
}

function ipv6({ source, destination }: Ends, next: number, payload: readonly number[], hopLimit = 64) {
  const address = (last: number): readonly number[] => [0xfd, ...zeros(14), last]
  return [
    0x60,
    0,
    0,
    0,
    ...word(payload.length),
    next,
    hopLimit,
    ...address(source),
    ...address(destination),
    ...payload,
  ]
}

/** A port of 4000 at the local end and 53 at the other. */
function udp({ source }: Ends, { stated, data = 16 }: { readonly stated?: number; readonly data?: number } = {}) {
  const ports = source === localEnd ? [...word(4000), ...word(53)] : [...word(53), ...word(4000)]
  return [...ports, ...word(stated ?? 8 + data), 0, 0, ...zeros(data)]
}

const echo = (type: number, code = 0): readonly number[] => [type, code, 0, 0, 0, 5, 0, 1, ...zeros(8)]
const fragmentHeader = (next: number, offset: number, isMore: boolean): readonly number[] => [
  next,
  0,
  ...word((offset << 3) | (isMore ? 1 : 0)),
  0,
  0,
  0,
  7,
]
const options = (next: number, units = 0): readonly number[] => [next, units, 1, 4 + 8 * units, ...zeros(4 + 8 * units)]

function frame(packet: readonly number[]): Buffer {
  const isIpv6 = packet[0] === 0x60
  return Buffer.from([...zeros(12), ...(isIpv6 ? [0x86, 0xdd] : [8, 0]), ...packet])
}

describeKernel('the datapath and packets at the edge', () => {
  let folder: BpffsFolder
  let datapath: DatapathCase
  let run: PacketRunner

  beforeAll(() => {
    folder = createBpffsFolder()
    datapath = openDatapathCase(folder)
    writeConfig(datapath.bpf, datapath.tables, (row) => row.writeUInt32LE(modeNumbers.enforce, configLayout.mode))
    run = createPacketRunner(datapath.bpf, datapath.tables.programs)
  })
  afterAll(() => folder.remove())

  /** What goes out by these entries, and of what comes in only what belongs to it; a new lifetime unless it is an edit. */
  const bind = (entries: readonly Entry[], after?: Snapshot): Snapshot => {
    const token = after?.token ?? giveToken(datapath, slot)
    const egress = snapshotOf({ token, direction: 'egress', entries, stateful: true, firstRow: 30_000, after })
    const nothing: readonly Entry[] = [{ action: 'deny', rule: 0 }]
    const ingress = snapshotOf({ token, direction: 'ingress', entries: nothing, stateful: true, firstRow: 30_100 })
    bindAll(datapath, [
      { slot, direction: 'egress', snapshot: egress },
      ...(after === undefined ? [{ slot, direction: 'ingress' as const, snapshot: ingress }] : []),
    ])
    return egress
  }
  const packetOf = (direction: Direction, packet: readonly number[]): TestPacket => {
    const padding = zeros(Math.max(0, 20 - packet.length))
    return { slot, direction, linkLayer: 'ethernet', mark: 0, frame: frame([...packet, ...padding]) }
  }
  const send = (direction: Direction, packet: readonly number[]): string => {
    const [decision] = run([packetOf(direction, packet)])
    return `${decision?.verdict} ${decision?.reason}`
  }
  const allowUdp: readonly Entry[] = [{ protocol: 'udp', action: 'allow', rule: 0 }]

  test('a UDP header that states less than itself or more than there is is malformed, and less than there is not', () => {
    for (const [family, send17] of [
      ['IPv4', (payload: readonly number[]) => send('egress', ipv4(out, 17, payload))],
      ['IPv6', (payload: readonly number[]) => send('egress', ipv6(out, 17, payload))],
    ] as const) {
      const sent = [24, 8, 23, 7, 0, 25, 65_535].map((stated) => {
        bind(allowUdp)
        return send17(udp(out, { stated }))
      })
      const passes = 'allow rule'
      const not = 'deny malformed'
      expect(sent, family).toEqual([passes, passes, passes, not, not, not, not])
    }
    // Of a connection alike: the straight path leaves them to the general one.
    bind(allowUdp)
    expect(send('egress', ipv4(out, 17, udp(out)))).toBe('allow rule')
    expect(send('egress', ipv4(out, 17, udp(out, { stated: 25 })))).toBe('deny malformed')
    expect(send('egress', ipv4(out, 17, udp(out)))).toBe('allow established')
  })

  test('an SCTP chunk that states less than its header or more than there is is malformed', () => {
    const sctp = (stated: number) => [...word(4000), ...word(53), ...zeros(8), 1, 0, ...word(stated), ...zeros(16)]
    const decide = (stated: number, fragment = 0): string => {
      bind([{ protocol: 'sctp', action: 'allow', rule: 0 }])
      return send('egress', ipv4(out, 132, sctp(stated), fragment))
    }
    expect([20, 4, 3, 0, 21].map((stated) => decide(stated))).toEqual([
      'allow rule',
      'allow rule',
      ...Array<string>(3).fill('deny malformed'),
    ])
    expect([2000, 3].map((stated) => decide(stated, 0x2000))).toEqual(['allow rule', 'deny malformed'])
  })

  test('a first fragment states the length of its whole datagram', () => {
    bind(allowUdp)
    expect(send('egress', ipv4(out, 17, udp(out, { stated: 4000 }), 0x2000))).toBe('allow rule')
    expect(send('egress', ipv4(out, 17, zeros(24), 3))).toBe('allow established')
    expect(send('egress', ipv4(out, 17, udp(out, { stated: 7 }), 0x2000))).toBe('deny malformed')
    bind(allowUdp)
    const first = [...fragmentHeader(17, 0, true), ...udp(out, { stated: 4000 })]
    expect(send('egress', ipv6(out, 44, first))).toBe('allow rule')
    // The only fragment of its datagram is none.
    const whole = [...fragmentHeader(17, 0, false), ...udp(out, { stated: 4000 })]
    expect(send('egress', ipv6(out, 44, whole))).toBe('deny malformed')
  })

  test('a datagram to be segmented may say zero, and more than there is it may not', () => {
    const segmented = createSegmentRunner(datapath.bpf, datapath.tables.programs)
    const decide = (stated: number) => {
      bind(allowUdp)
      return segmented([packetOf('egress', ipv4(out, 17, udp(out, { stated })))])
    }
    expect([0, 24].map((stated) => decide(stated))).toEqual(
      [0, 24].map(() => [{ verdict: 'allow', reason: 'rule', rule: 0 }]),
    )
    expect([7, 25].map((stated) => decide(stated))).toEqual(
      [7, 25].map(() => [{ verdict: 'deny', reason: 'malformed' }]),
    )
  })

  test('an ICMPv6 error belongs to its connection also where headers come before the ports that it quotes', () => {
    const tooBig = (quoted: readonly number[]) =>
      ipv6({ source: router, destination: localEnd }, 58, [...[2, 0, 0, 0, 0, 0, 5, 0], ...quoted])
    const quotes: readonly (readonly [string, readonly number[], string])[] = [
      ['plain', ipv6(out, 17, udp(out)), 'allow icmp_error'],
      ['a first fragment', ipv6(out, 44, [...fragmentHeader(17, 0, true), ...udp(out)]), 'allow icmp_error'],
      ['hop-by-hop options', ipv6(out, 0, [...options(17), ...udp(out)]), 'allow icmp_error'],
      ['a routing header', ipv6(out, 43, [17, 2, 0, 0, ...zeros(20), ...udp(out)]), 'allow icmp_error'],
      ['an authentication header', ipv6(out, 51, [17, 4, ...zeros(22), ...udp(out)]), 'allow icmp_error'],
      [
        'options, then a fragment',
        ipv6(out, 60, [...options(44, 2), ...fragmentHeader(17, 0, true), ...udp(out)]),
        'allow icmp_error',
      ],
      [
        'six headers',
        ipv6(out, 60, [...[60, 60, 60, 60, 60, 17].flatMap((next) => options(next)), ...udp(out)]),
        'allow icmp_error',
      ],
      [
        'seven headers',
        ipv6(out, 60, [...[60, 60, 60, 60, 60, 60, 17].flatMap((next) => options(next)), ...udp(out)]),
        'deny rule',
      ],
      ['a later fragment', ipv6(out, 44, [...fragmentHeader(17, 3, true), ...udp(out)]), 'deny rule'],
      ['a header that is cut short', ipv6(out, 60, [...options(17, 9).slice(0, 24)]), 'deny rule'],
      ['ports that are cut short', ipv6(out, 60, [...options(17), ...udp(out).slice(0, 7)]), 'deny rule'],
      ['no more than the ports', ipv6(out, 60, [...options(17), ...udp(out).slice(0, 8)]), 'allow icmp_error'],
      ['another connection', ipv6(out, 60, [...options(17), ...word(4001), ...udp(out).slice(2)]), 'deny rule'],
    ]
    for (const [name, quoted, wanted] of quotes) {
      bind(allowUdp)
      expect(send('egress', ipv6(out, 17, udp(out)))).toBe('allow rule')
      expect(send('ingress', tooBig(quoted)), name).toBe(wanted)
    }
  })

  test('a datagram sent in fragments is told of by its first, in both families', () => {
    bind(allowUdp)
    expect(send('egress', ipv4(out, 17, udp(out, { stated: 4000 }), 0x2000))).toBe('allow rule')
    const error4 = (quoted: readonly number[]) =>
      ipv4({ source: router, destination: localEnd }, 1, [3, 4, ...zeros(6), ...quoted])
    expect(send('ingress', error4(ipv4(out, 17, udp(out, { stated: 4000 }), 0x2000)))).toBe('allow icmp_error')
    expect(send('ingress', error4(ipv4(out, 17, udp(out), 0x2003)))).toBe('deny rule')
  })

  test('neighbours, routers and listeners are the link’s own but in fragments, which no host heeds', () => {
    const whole = (type: number, hopLimit: number) => send('ingress', ipv6(back, 58, [type, ...zeros(23)], hopLimit))
    const pieces = (type: number, hopLimit: number, isMore: boolean) =>
      send('ingress', ipv6(back, 44, [...fragmentHeader(58, 0, isMore), type, ...zeros(23)], hopLimit))
    bind([])
    for (const [type, hopLimit] of [
      [134, 255],
      [135, 255],
      [136, 255],
      [130, 1],
      [143, 1],
    ] as const) {
      expect([whole(type, hopLimit), pieces(type, hopLimit, true), pieces(type, hopLimit, false)]).toEqual([
        'allow link',
        'deny rule',
        'deny rule',
      ])
      expect(whole(type, 64)).toBe('deny rule')
    }
  })

  test('an edit asks an echo’s connection with the code that its first request had', () => {
    for (const [request, family, protocol] of [
      [8, ipv4, 'icmp'],
      [128, ipv6, 'icmpv6'],
    ] as const) {
      const number = protocol === 'icmp' ? 1 : 58
      const only = (icmpCode: number): readonly Entry[] => [
        { protocol, icmpType: request, icmpCode, action: 'allow', rule: 0 },
      ]
      const ping = (): string => send('egress', family(out, number, echo(request, 4)))
      const first = bind(only(4))
      expect([ping(), ping()]).toEqual(['allow rule', 'allow established'])
      const second = bind(only(4), first)
      expect([ping(), ping()]).toEqual(['allow rule', 'allow established'])
      bind(only(0), second)
      expect(ping()).toBe('deny no_match')
    }
  })
})
