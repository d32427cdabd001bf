/** The datapath's programs in the kernel agree with the reference on random policies and packets, counters included. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { configLayout, modeNumbers } from '#compile/traffic-policy/datapath-maps'
import { fallbackReasons } from '#compile/traffic-policy/reasons'
import { writeConfig } from '#kernel/datapath-tables'
import { seedOfRun } from '../random/random'
import { type BpffsFolder, createBpffsFolder } from './bpffs-folder'
import { checkRound } from './check-datapath'
import { type DatapathCase, openDatapathCase } from './datapath-case'
import { describeKernel } from './describe-kernel'
import { createPacketRunner, type PacketRunner } from './packet-runner'

const packetsPerRound = 20_480
const rounds = Math.ceil(Number(process.env.PORTOLAN_FUZZ_BPF_PACKETS ?? 200_000) / packetsPerRound)

describeKernel('the datapath and random packets', () => {
  let folder: BpffsFolder
  let datapath: DatapathCase
  let run: PacketRunner

  beforeAll(() => {
    folder = createBpffsFolder()
    datapath = openDatapathCase(folder)
    writeConfig(datapath.bpf, datapath.tables, (row) => {
      row.writeUInt32LE(modeNumbers.enforce, configLayout.mode)
      row.writeUInt32LE(0x700, configLayout.markMask)
      row.writeUInt32LE(8, configLayout.markShift)
    })
    run = createPacketRunner(datapath.bpf, datapath.tables.programs)
  })
  afterAll(() => folder.remove())

  test('verdict, reason, rule and counters agree for every pair of a policy and a packet', () => {
    const seed = seedOfRun()
    const reasons = new Map<string, number>()
    let packets = 0
    for (let round = 0; round < rounds; round++) {
      const tally = checkRound(datapath, run, { seed: seed + round, packets: packetsPerRound })
      packets += tally.packets
      for (const [reason, count] of tally.reasons) reasons.set(reason, (reasons.get(reason) ?? 0) + count)
    }
    console.log(`${packets} packets: ${[...reasons].map(([reason, count]) => `${reason} ${count}`).join(', ')}`)
    expect(packets).toBeGreaterThanOrEqual(Number(process.env.PORTOLAN_FUZZ_BPF_PACKETS ?? 200_000))
    // A reason that no packet met would be a reason that is not tested.
    expect(['rule', ...fallbackReasons].filter((reason) => (reasons.get(reason) ?? 0) < 100)).toEqual([])
  }, 36_000_000)
})
