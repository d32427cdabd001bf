/** The rows about recorded flows: policies generated from a million of them, and 500 policies tried on as many. */
import { writeFileSync } from 'node:fs'
import type { PolicyBench } from './bench-policies'
import { bigPolicies } from './big-policies'

export function benchFlows({ rounds, file, run, say }: PolicyBench): readonly (readonly string[])[] {
  const path = file('audited.json')
  writeFileSync(path, bigPolicies({ pods: 3000 }))
  const audits: number[] = []
  const generations: number[] = []
  let [auditPeak, generatePeak] = [0, 0]
  for (let round = 1; round <= rounds; round++) {
    say(`flows, round ${round} of ${rounds} …`)
    const audit = run('flows', path)
    const generation = run('generate', path)
    audits.push((audit.times.audit ?? Number.NaN) + (audit.times.report ?? 0))
    generations.push((generation.times.gather ?? Number.NaN) + (generation.times.generate ?? 0))
    auditPeak = Math.max(auditPeak, audit.peakMegabytes)
    generatePeak = Math.max(generatePeak, generation.peakMegabytes)
  }
  const [audited, generated] = [median(audits), median(generations)]
  return [
    [
      'policies of 300 workloads from 1 M flows, proven, against 10 s',
      seconds(generated),
      '10.00 s',
      (generated / 10_000).toFixed(2),
      '1',
      `${generatePeak} MB`,
    ],
    [
      '1 M distinct flows against 500 policies, against 5 s',
      seconds(audited),
      '5.00 s',
      (audited / 5000).toFixed(2),
      '1',
      `${auditPeak} MB`,
    ],
  ]
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(2)} s`
