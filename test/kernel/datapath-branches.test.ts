/** Random packets take every branch of the datapath's programs: what none takes would be tested by nobody. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { configLayout, modeNumbers } from '#compile/traffic-policy/datapath-maps'
import { writeConfig } from '#kernel/datapath-tables'
import { seedOfRun } from '../random/random'
import { type BpffsFolder, createBpffsFolder } from './bpffs-folder'
import { markBranches } from './branch-marks'
import { checkRound } from './check-datapath'
import { type DatapathCase, openDatapathCase } from './datapath-case'
import { describeKernel } from './describe-kernel'
import { createPacketRunner, createSegmentRunner } from './packet-runner'

describeKernel('the branches of the datapath’s programs', () => {
  let folder: BpffsFolder
  let datapath: DatapathCase

  beforeEach(() => {
    folder = createBpffsFolder()
    // So few events that they are full soon.
    datapath = openDatapathCase(folder, { events: 4096 })
    writeConfig(datapath.bpf, datapath.tables, (row) => {
      row.writeUInt32LE(modeNumbers.enforce, configLayout.mode)
      row.writeUInt32LE(0x700, configLayout.markMask)
      row.writeUInt32LE(8, configLayout.markShift)
    })
  })
  afterEach(() => folder.remove())

  /** Two that no packet can take: bits run out before the verifier's bound, and bytes at hand are not copied. */
  const isImpossible = (name: string, readsDirectly: boolean): boolean =>
    name.endsWith('skip_group, not to next_group') || (readsDirectly && name.includes('copy_header'))

  test.each([
    ['programs that read the packet where it is', true],
    ['programs that copy every header, as those must whose packets are scattered', false],
  ])('every branch is taken by some random packet: %s', (_, readsDirectly) => {
    const marks = markBranches(datapath, readsDirectly)
    const run = createPacketRunner(datapath.bpf, datapath.tables.programs)
    const segments = createSegmentRunner(datapath.bpf, datapath.tables.programs)
    const seed = seedOfRun()
    const untaken = (): readonly string[] => marks.untaken().filter((name) => !isImpossible(name, readsDirectly))
    expect(marks.count).toBeGreaterThan(2000)
    checkRound(datapath, segments, { seed, packets: 10_000, isSegmented: true })
    for (let round = 1; round <= 40 && untaken().length > 0; round++) {
      checkRound(datapath, run, { seed: seed + round, packets: 20_480 })
    }
    expect(untaken()).toEqual([])
  })
})
