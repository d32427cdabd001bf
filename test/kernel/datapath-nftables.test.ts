/** The same policies as nftables rules behind the datapath, on one device with real packets: rule by rule both count the same. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CompiledPolicy, compilePolicy } from '#compile/traffic-policy/compile-policy'
import { printFrame } from '#compile/traffic-policy/print-frame'
import type { TrafficPolicySpec } from '#model/traffic-policy-schema'
import { arbitraryPacket, arbitrarySpec, policyOf } from '../random/arbitrary-traffic-policy'
import { type Random, randomOf, seedOfRun } from '../random/random'
import { fallbacksOf, hitsOf, type Lab, openLab, publish } from './datapath-lab'
import { describeKernel } from './describe-kernel'
import { naiveTrafficRules, noMatchCounter } from './naive-traffic-rules'
import { inside } from './namespace'
import { printPcap } from './pcap'
import { mustRun } from './run-command'

const policies = 20
const packetsOfEach = 300

describeKernel('the datapath and naive nftables rules', () => {
  let lab: Lab
  let folder: string
  const seed = seedOfRun()

  beforeAll(() => {
    lab = openLab()
    folder = mkdtempSync(join(tmpdir(), 'portolan-naive-'))
    // Denials are counted and not dropped, so that nftables sees each packet as well.
    lab.datapath.setMode('audit')
    // Nothing but what is sent here: no reply, no neighbour.
    for (const end of [lab.host, lab.workload])
      mustRun(inside(end, ['sh', '-c', 'echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6']))
  })
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true })
    lab.close()
  })

  /** That compile, with nothing that nftables knows no word for: path classes, and connections of our own kind. */
  function sampleSpecs(): readonly { readonly spec: TrafficPolicySpec; readonly compiled: CompiledPolicy }[] {
    return fc.sample(arbitrarySpec, { numRuns: 4 * policies, seed }).flatMap(({ rules }) => {
      const plain = rules.map(({ match: { paths: _, ...match } = {}, ...rule }) => ({ ...rule, match }))
      const spec: TrafficPolicySpec = { stateful: false, rules: plain }
      const compilation = compilePolicy(policyOf(spec))
      return rules.length > 0 && compilation.kind === 'compiled' ? [{ spec, compiled: compilation.compiled }] : []
    })
  }

  function sampleFrames(at: number): readonly Buffer[] {
    const random = randomOf(seed + at)
    return fc.sample(arbitraryPacket, { numRuns: 2 * packetsOfEach, seed: seed + at }).flatMap((packet) => {
      if (packet.isLaterFragment === true || typeof packet.protocol === 'number') return []
      const frame = printFrame(packet)
      return frame === undefined ? [] : [dress(random, Buffer.from(frame))]
    })
  }

  test('for random policies and random packets each rule has the same count in both, and so has "none"', () => {
    let sent = 0
    const met = new Set<string>()
    for (const [at, { spec, compiled }] of sampleSpecs().slice(0, policies).entries()) {
      publish(lab, 'egress', { uid: `policy-${at}`, stateful: false, entries: compiled.entries })
      mustRun(inside(lab.host, ['nft', '-f', '-']), `flush ruleset\n${naiveTrafficRules(spec, 'host0')}`)
      const before = fallbacksOf(lab, 'egress').no_match
      const frames = sampleFrames(at)
      const file = join(folder, 'frames.pcap')
      writeFileSync(file, printPcap(frames))
      mustRun(inside(lab.workload, ['tcpreplay', '--quiet', '--topspeed', '--intf1=eth0', file]))
      const theirs = readCounters(lab.host)
      const ours = spec.rules.map(({ name }, rule) => [name, hitsOf(lab, 'egress', rule)] as const)
      ours.push([noMatchCounter, Number(fallbacksOf(lab, 'egress').no_match - before)])
      expect(Object.fromEntries(ours), JSON.stringify(spec)).toEqual(theirs)
      expect(ours.reduce((sum, [, count]) => sum + count, 0)).toBe(frames.length)
      for (const [name, count] of ours) if (count > 0) met.add(name)
      sent += frames.length
    }
    expect(sent).toBeGreaterThan(policies * 100)
    expect([...met]).toEqual(expect.arrayContaining([noMatchCounter, 'rule-0', 'rule-1', 'rule-2', 'rule-3']))
  })
})

function readCounters(namespace: string): Readonly<Record<string, number>> {
  const output = mustRun(inside(namespace, ['nft', '-j', 'list', 'counters', 'table', 'netdev', 'naive']))
  const listed = JSON.parse(output).nftables as readonly { readonly counter?: { name: string; packets: number } }[]
  return Object.fromEntries(listed.flatMap(({ counter }) => (counter ? [[counter.name, counter.packets]] : [])))
}

/** Half of them with options or extension headers before the protocol, which must change nothing. */
function dress(random: Random, frame: Buffer): Buffer {
  if (random.chance(0.5)) return frame
  return frame.readUInt16BE(12) === 0x0800 ? withOptions(random, frame) : withExtensions(random, frame)
}

function withOptions(random: Random, frame: Buffer): Buffer {
  const words = random.between(1, 10)
  // "No operation", to the end.
  const dressed = Buffer.concat([frame.subarray(0, 34), Buffer.alloc(4 * words, 1), frame.subarray(34)])
  dressed.writeUInt8(0x45 + words, 14)
  dressed.writeUInt16BE(frame.readUInt16BE(16) + 4 * words, 16)
  return dressed
}

function withExtensions(random: Random, frame: Buffer): Buffer {
  const types = [...(random.chance(0.5) ? [0] : []), ...random.some([60, 43, 44], 2), 60]
  const protocol = frame.readUInt8(20)
  const headers = types.map((type, index) => {
    const units = type === 44 ? 0 : random.below(3)
    const header = Buffer.alloc(8 * (units + 1))
    header.writeUInt8(types[index + 1] ?? protocol, 0)
    // What follows is one padding option, or the segments that a routing header has left: none.
    if (type !== 44) header.writeUInt8(units, 1)
    if (type === 0 || type === 60) header.writeUInt16BE(0x0100 + 8 * units + 4, 2)
    return header
  })
  const dressed = Buffer.concat([frame.subarray(0, 54), ...headers, frame.subarray(54)])
  dressed.writeUInt8(types[0] ?? protocol, 20)
  dressed.writeUInt16BE(dressed.length - 54, 18)
  return dressed
}
