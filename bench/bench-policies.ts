/** The rows about policies: a matrix of 2,000 pods against its goal, one of 8,000 in as many workloads, and single verdicts. */
import { writeFileSync } from 'node:fs'
import { bigPolicies } from './big-policies'

type Measured = { readonly times: Readonly<Record<string, number>>; readonly peakMegabytes: number }

export type PolicyBench = {
  readonly rounds: number
  /** A path in a folder of the run. */
  readonly file: (name: string) => string
  readonly run: (step: string, file: string) => Measured
  readonly say: (sentence: string) => void
}

type Round = { readonly small: Measured; readonly large: Measured }

export function benchPolicies({ rounds, file, run, say }: PolicyBench): readonly (readonly string[])[] {
  const [small, large] = [2000, 8000].map((pods) => {
    const path = file(`policies-${pods}.json`)
    writeFileSync(path, bigPolicies({ pods }))
    return path
  })
  const measured: Round[] = []
  for (let round = 1; round <= rounds; round++) {
    say(`policies, round ${round} of ${rounds} …`)
    measured.push({ small: run('policies', small ?? ''), large: run('policies', large ?? '') })
  }
  const of = (size: keyof Round, ...names: readonly string[]): number =>
    median(measured.map((round) => names.reduce((sum, name) => sum + (round[size].times[name] ?? 0), 0)))
  const matrix = of('small', 'world', 'matrix', 'print')
  const larger = of('large', 'world', 'matrix', 'print')
  const verdicts = 1000 / of('small', 'verdicts')
  const peak = median(measured.map(({ small: { peakMegabytes } }) => peakMegabytes))
  return [
    [
      'matrix of 2,000 pods, 300 workloads, 500 policies, printed, against 2 s',
      seconds(matrix),
      '2.00 s',
      (matrix / 2000).toFixed(2),
      '1',
      `${peak} MB`,
    ],
    [
      'the same with 8,000 pods in the 300 workloads, against 2,000',
      seconds(larger),
      seconds(matrix),
      (larger / matrix).toFixed(2),
      '',
      '',
    ],
    [
      'printing the matrix, against making it',
      seconds(of('small', 'print')),
      seconds(of('small', 'matrix')),
      (of('small', 'print') / of('small', 'matrix')).toFixed(2),
      '',
      '',
    ],
    [
      'single verdicts, against a million a second',
      `${verdicts.toFixed(1)} M/s`,
      '1.0 M/s',
      (1 / verdicts).toFixed(2),
      '1',
      '',
    ],
  ]
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(2)} s`
