/** The performance table: each row's two sides measured in turn, in one run, as medians of several rounds. */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { printTable } from '#base/text'
import { runPreflight } from '#kernel/preflight'
import { benchAgent } from './bench-agent'
import { benchBroker } from './bench-broker'
import { benchDatapath } from './bench-datapath'
import { benchFlows } from './bench-flows'
import { benchGenerate } from './bench-generate'
import { benchMaps } from './bench-maps'
import { benchMetrics } from './bench-metrics'
import { benchPolicies } from './bench-policies'
import { benchStore } from './bench-store'
import { bigCluster, type Size } from './big-cluster'

const isQuick = process.argv.includes('--quick')
const rounds = isQuick ? 1 : Number(process.env.PORTOLAN_BENCH_ROUNDS ?? 5)
const size: Size = isQuick ? { services: 1000, podsPerService: 10 } : { services: 10_000, podsPerService: 10 }
const storeSize = isQuick
  ? { pods: 10_000, pastHolders: 100_000, flows: 20_000, edges: 13_000 }
  : { pods: 100_000, pastHolders: 1_000_000, flows: 200_000, edges: 13_000 }
const folder = mkdtempSync(join(tmpdir(), 'portolan-bench-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

const say = (sentence: string): void => {
  process.stderr.write(`${sentence}\n`)
}

type Measured = { readonly times: Readonly<Record<string, number>>; readonly peakMegabytes: number }

function runTask(step: string, file: string): Measured {
  const { stdout, status, stderr } = spawnSync(process.execPath, ['--import', 'tsx', 'bench/task.ts', step, file], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`bench/task.ts ${step} failed: ${stderr}`)
  return JSON.parse(stdout) as Measured
}

/** A whole process: wall time, and the peak that the kernel counted for it. */
async function runProgram(program: string, args: readonly string[], stdin?: string): Promise<Measured> {
  const start = performance.now()
  const child = spawn(program, args, { stdio: [stdin === undefined ? 'ignore' : 'pipe', 'ignore', 'pipe'] })
  let peak = 0
  const poll = setInterval(() => {
    peak = Math.max(peak, peakOf(child.pid))
  }, 2)
  let errors = ''
  child.stderr?.on('data', (chunk) => {
    errors += String(chunk)
  })
  if (stdin !== undefined) child.stdin?.end(readFileSync(stdin))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  clearInterval(poll)
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${errors.slice(0, 500)}`)
  return { times: { whole: performance.now() - start }, peakMegabytes: Math.round(peak / 1024) }
}

function peakOf(pid: number | undefined): number {
  const path = `/proc/${pid}/status`
  if (pid === undefined || !existsSync(path)) return 0
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(path, 'utf8'))?.[1] ?? 0)
  } catch {
    return 0
  }
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(2)} s`

async function benchRules(): Promise<readonly (readonly string[])[]> {
  const file = join(folder, 'cluster.json')
  say(`writing a cluster of ${size.services} Services and ${size.services * size.podsPerService} endpoints …`)
  writeFileSync(file, bigCluster(size))
  const json: Measured[] = []
  const rules: Measured[] = []
  for (let round = 1; round <= rounds; round++) {
    say(`objects to rules, round ${round} of ${rounds} …`)
    json.push(runTask('json', file))
    rules.push(runTask('rules', file))
  }
  const of = (runs: readonly Measured[], ...names: readonly string[]): number =>
    median(runs.map((run) => names.reduce((sum, name) => sum + (run.times[name] ?? 0), 0)))
  const base = of(json, 'parse')
  const peaks = `${median(rules.map((run) => run.peakMegabytes))} MB : ${median(json.map((run) => run.peakMegabytes))} MB`
  const row = (title: string, value: number, goal: string, memory: string): readonly string[] => [
    title,
    seconds(value),
    seconds(base),
    (value / base).toFixed(2),
    goal,
    memory,
  ]
  const [nft, ipt] = [of(rules, 'nftRules', 'nftPrint'), of(rules, 'rules', 'print')]
  const nftRow = [
    'nftables rules, rendered and printed, against iptables rules',
    seconds(nft),
    seconds(ipt),
    (nft / ipt).toFixed(2),
    '1',
    '',
  ]
  const megabytes = Math.round(readFileSync(file).length / 1e6)
  return [
    row(`objects → slices → rules (${megabytes} MB of JSON)`, of(rules, 'slices', 'rules'), '2', peaks),
    row('the same, and the parsed JSON → objects', of(rules, 'objects', 'slices', 'rules'), '', ''),
    row('whole file → printed rules', of(rules, 'parse', 'objects', 'slices', 'rules', 'print'), '', ''),
    nftRow,
  ]
}

async function benchTrace(): Promise<readonly (readonly string[])[]> {
  const probe = spawnSync('unshare', ['-n', 'iptables-restore', '--version'], { encoding: 'utf8' })
  if (probe.status !== 0) {
    say('the second row is left out: it needs root and iptables')
    return []
  }
  const save = join(folder, 'node.save')
  say('writing a ruleset of 200,000 rules …')
  const target = writeBigSave(save)
  const ours: Measured[] = []
  const theirs: Measured[] = []
  for (let round = 1; round <= rounds; round++) {
    say(`parse and trace, round ${round} of ${rounds} …`)
    ours.push(await runProgram(process.execPath, ['bin/portolan.js', 'trace', '--ruleset', save, '--to', target]))
    theirs.push(await runProgram('unshare', ['-n', 'iptables-restore', '--test'], save))
  }
  const whole = (runs: readonly Measured[]): number => median(runs.map((run) => run.times.whole ?? Number.NaN))
  const peaks = `${median(ours.map((run) => run.peakMegabytes))} MB : ${median(theirs.map((run) => run.peakMegabytes))} MB`
  return [
    [
      'parse and trace a save, whole process, against iptables-restore --test',
      seconds(whole(ours)),
      seconds(whole(theirs)),
      (whole(ours) / whole(theirs)).toFixed(2),
      '1',
      peaks,
    ],
  ]
}

/** About 200,000 rules as kube-proxy saves them: 8,700 Services of ten endpoints. */
function writeBigSave(file: string): string {
  const cluster = join(folder, 'trace-cluster.json')
  writeFileSync(cluster, bigCluster({ services: isQuick ? 870 : 6150, podsPerService: 10 }))
  const { status, stderr } = spawnSync(
    'sh',
    [
      '-c',
      'exec "$0" bin/portolan.js iptables --from "$1" --node node-1 --cluster-cidr 10.16.0.0/12 > "$2"',
      process.execPath,
      cluster,
      file,
    ],
    { encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(`no ruleset was made: ${stderr}`)
  const rules = readFileSync(file, 'utf8').match(/^-A /gm)?.length ?? 0
  say(`${rules} rules`)
  return '10.96.3.7:80'
}

function benchDatapathHere(): readonly (readonly string[])[] {
  const preflight = runPreflight()
  if (preflight.ok) return benchDatapath(rounds)
  say(`the rows of the datapath are left out: ${preflight.reasons.join('; ')}`)
  return []
}

async function benchAgentHere(): Promise<readonly (readonly string[])[]> {
  const preflight = runPreflight()
  if (preflight.ok) return benchAgent({ rounds, idleSeconds: isQuick ? 5 : 20, folder })
  say(`the rows of the agent are left out: ${preflight.reasons.join('; ')}`)
  return []
}

const benches = {
  rules: benchRules,
  trace: benchTrace,
  flows: () => benchFlows({ rounds, file: (name) => join(folder, name), run: runTask, say }),
  policies: () => benchPolicies({ rounds, file: (name) => join(folder, name), run: runTask, say }),
  maps: () => benchMaps({ rounds, file: (name) => join(folder, name), run: runTask, say }),
  metrics: () => benchMetrics(rounds),
  datapath: () => benchDatapathHere(),
  agent: () => benchAgentHere(),
  store: () => benchStore(storeSize, Math.min(rounds, 3), say),
  broker: () => benchBroker(storeSize, Math.min(rounds, 3), say),
  generate: () => benchGenerate(isQuick ? 100_000 : 1_000_000, Math.min(rounds, 3), say),
}
/** All of them, unless some are named: `npm run bench -- --only policies`. */
const only = process.argv.indexOf('--only')
const chosen = only < 0 ? Object.keys(benches) : (process.argv[only + 1] ?? '').split(',')
const rows: (readonly string[])[] = []
for (const [name, bench] of Object.entries(benches)) if (chosen.includes(name)) rows.push(...(await bench()))
const [cpu] = cpus()
process.stdout.write(
  `${cpus().length} × ${cpu?.model ?? 'unknown processor'}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.versions.node}; medians of ${rounds} rounds\n\n`,
)
process.stdout.write(printTable(['WHAT', 'PORTOLAN', 'MEASURE', 'RATIO', 'GOAL', 'PEAK MEMORY'], rows))
