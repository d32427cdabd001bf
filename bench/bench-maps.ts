/** The rows about Cilium's maps: all of one node against `JSON.parse` of the objects, a path by them, and a thousand Maglev tables. */
import { readFileSync, writeFileSync } from 'node:fs'
import { bigCilium } from './big-cilium'

type Measured = { readonly times: Readonly<Record<string, number>>; readonly peakMegabytes: number }

export type MapsBench = {
  readonly rounds: number
  readonly file: (name: string) => string
  readonly run: (step: string, file: string) => Measured
  readonly say: (sentence: string) => void
}

export function benchMaps({ rounds, file, run, say }: MapsBench): readonly (readonly string[])[] {
  const input = file('cilium.json')
  writeFileSync(input, bigCilium())
  const json: Measured[] = []
  const maps: Measured[] = []
  const journeys: Measured[] = []
  for (let round = 1; round <= rounds; round++) {
    say(`maps of Cilium, round ${round} of ${rounds} …`)
    json.push(run('json', input))
    maps.push(run('maps', input))
    journeys.push(run('journeys', input))
  }
  const of = (runs: readonly Measured[], ...names: readonly string[]): number =>
    median(runs.map(({ times }) => names.reduce((sum, name) => sum + (times[name] ?? 0), 0)))
  const base = of(json, 'parse')
  const peaks = `${median(maps.map((one) => one.peakMegabytes))} MB : ${median(json.map((one) => one.peakMegabytes))} MB`
  const megabytes = Math.round(readFileSync(input).length / 1e6)
  const row = (title: string, value: number, goal: string, memory: string): readonly string[] => [
    title,
    seconds(value),
    seconds(base),
    (value / base).toFixed(2),
    goal,
    memory,
  ]
  const tables = of(maps, 'maglev')
  const path = (title: string, value: number): readonly string[] => [
    title,
    `${value.toFixed(2)} ms`,
    '5.00 ms',
    (value / 5).toFixed(2),
    '1',
    '',
  ]
  return [
    row(
      `5,000 pods, 1,000 Services, 300 policies (${megabytes} MB of JSON) → all maps of a node`,
      of(maps, 'maps'),
      '3',
      peaks,
    ),
    row('the same, and their bytes and text', of(maps, 'maps', 'dump'), '', ''),
    row('the same, with objects and slices', of(maps, 'objects', 'slices', 'maps', 'dump'), '', ''),
    path('a path between pods of two nodes and back, once their maps are there', of(maps, 'path')),
    path('a path by kube-proxy’s iptables rules to all five pods of a Service and back', of(journeys, 'iptables')),
    path('the same by nftables rules', of(journeys, 'nftables')),
    ['1,000 Maglev tables of 16,381 rows, against 2 s', seconds(tables), '2.00 s', (tables / 2000).toFixed(2), '1', ''],
  ]
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(2)} s`
