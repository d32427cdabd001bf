/** The shares that a trace tells are those of the kernel's own dice, over thousands of connections. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseIp, printEndpoint } from '#base/ip'
import { parseSave } from '#compile/iptables/parse-save'
import { printRestore } from '#compile/iptables/print-restore'
import { printSave } from '#compile/iptables/print-save'
import { fullTables, savedRuleset } from '#compile/iptables/render-iptables'
import { traceRuleset } from '#trace/trace-ruleset'
import { rulesOfSketch } from '../random/cluster-objects'
import { layoutSpec, nodeAddresses, nodeName, otherNodeName, places } from '../random/node-layout'
import type { ClusterSketch, PodSketch, ServiceSketch } from '../random/random-cluster'
import { chanceOf } from './chi-square'
import { flushConnections, readConnections } from './connections'
import { describeKernel } from './describe-kernel'
import { createNode, type KernelNode } from './kernel-node'
import { ipv4Rules, loadRules } from './rules'
import type { SentPacket } from './sent-packet'
import { sendFromWire } from './wire'

const connectionCount = 3000

/** Four tests of a chance each: that any of them fails for nothing is less likely than one in a million. */
const leastChance = 1e-7

function serviceOf(at: number, endpointCount: number, affinitySeconds?: number): ServiceSketch {
  const pods = Array.from({ length: endpointCount }, (_, index): PodSketch => {
    const node = index % 2 === 0 ? nodeName : otherNodeName
    return { host: 20 + index, node, usesHostNetwork: false, state: 'ready', basePort: 8000 }
  })
  return {
    name: `s${at}`,
    type: 'ClusterIP',
    clusterIP: places.ipv4.serviceIp(at + 1),
    ports: [{ protocol: 'UDP', port: 53, nodePort: 0, target: 'same' }],
    externalIPs: [],
    vips: [],
    sourceRanges: [],
    isInternalLocal: false,
    isExternalLocal: false,
    healthCheckNodePort: 0,
    affinitySeconds,
    publishesNotReady: false,
    pods,
  }
}

const withAffinity = serviceOf(3, 4, 3600)
const services = [serviceOf(0, 3), serviceOf(1, 5), serviceOf(2, 7), withAffinity]
const sketch: ClusterSketch = { seed: 0, family: 'ipv4', settings: {}, services }
const { sync } = rulesOfSketch(sketch)

/** Each from a client of its own, which a Service with affinity does not know yet. */
function packetTo({ clusterIP }: ServiceSketch, client: number, sourcePort: number): SentPacket {
  const source = `100.64.${client >> 8}.${client & 255}`
  return { from: 'eth0', protocol: 'udp', source, sourcePort, destination: clusterIP, destinationPort: 53 }
}

function sharesOf({ clusterIP }: ServiceSketch): ReadonlyMap<string, number> {
  const destination = parseIp(clusterIP)
  const source = parseIp('100.64.0.1')
  if (destination === undefined || source === undefined) throw new Error('not addresses')
  const packet = { destination, destinationPort: 53, protocol: 'udp', source, inInterface: 'eth0' } as const
  const rulesets = parseSave(printSave(savedRuleset(sync), { date: 'now' }), 'save').rulesets
  const { targets } = traceRuleset({ packet, rulesets, nodeIps: nodeAddresses.ipv4 }).value
  return new Map(targets.map(({ address, share }) => [address, share]))
}

describeKernel('shares', () => {
  let node: KernelNode

  /** Where each client was sent. */
  const connect = (packets: readonly SentPacket[]): ReadonlyMap<string, string> => {
    flushConnections(node)
    // What a link takes at once is limited.
    for (let at = 0; at < packets.length; at += 500) {
      sendFromWire(
        node,
        packets.slice(at, at + 500).map((packet) => ({ packet, id: 1 })),
      )
    }
    const udp = readConnections(node).filter(({ protocol }) => protocol === 'udp')
    return new Map(
      udp.map(({ original, reply }) => [original.source, printEndpoint(reply.source, reply.sourcePort ?? 0)]),
    )
  }

  beforeAll(() => {
    node = createNode(layoutSpec)
    expect(loadRules(node, ipv4Rules, printRestore(fullTables(sync)))).toMatchObject({ ok: true })
  })
  afterAll(() => node?.close())

  test.each(services)('connections to a Service go to its endpoints as told: $name', (service) => {
    const packets = Array.from({ length: connectionCount }, (_, client) => packetTo(service, client, 10_000))
    const sentTo = connect(packets)
    const shares = sharesOf(service)
    expect([...shares.keys()].sort()).toEqual([...new Set(sentTo.values())].sort())
    expect(sentTo.size).toBeGreaterThan(connectionCount * 0.95)
    const counts = [...shares.keys()].map((target) => [...sentTo.values()].filter((one) => one === target).length)
    expect(chanceOf(counts, [...shares.values()]), counts.join()).toBeGreaterThan(leastChance)
  })

  test('a client that is remembered is sent where it was sent before', () => {
    // An endpoint's list holds 100 clients, so these are the last of few.
    const clients = Array.from({ length: 120 }, (_, index) => 20_000 + index)
    const first = connect(clients.map((client) => packetTo(withAffinity, client, 10_000)))
    const second = connect(clients.map((client) => packetTo(withAffinity, client, 10_001)))
    expect(first.size).toBe(clients.length)
    expect(second).toEqual(first)
  })
})

test('a bias that matters is seen, and even counts are not suspected', () => {
  const even = Array.from({ length: 5 }, () => 0.2)
  expect(chanceOf([600, 610, 590, 605, 595], even)).toBeGreaterThan(0.1)
  expect(chanceOf([780, 555, 555, 555, 555], even)).toBeLessThan(leastChance)
})
