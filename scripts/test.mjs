/** Runs the suites, the pure ones, then those that need a database or a kernel, and ends with one line of counts for all. */
import { randomInt } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildProgram, installPackages, installSystemTools, runShown, say } from './setup.mjs'

const own = new Set(['--update-cases', '--fuzz-bpf', '--fuzz-broker', '--fuzz-iptables', '--fuzz-policy'])
/** Which suites each long run is about. */
const fuzzFilters = {
  '--fuzz-bpf': ['datapath-packets'],
  '--fuzz-iptables': ['iptables-property', 'nftables-property', 'rulesets-property'],
  '--fuzz-policy': ['policies-property'],
}
const given = process.argv.slice(2)
const flags = new Set(given.filter((arg) => own.has(arg)))
const filters = given.filter((arg) => !own.has(arg))
const folder = mkdtempSync(join(tmpdir(), 'portolan-test-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

installPackages()
buildProgram()
const counts = chosenRuns().map(runProject).reduce(addCounts, { passed: 0, failed: 0, skipped: 0 })
process.exitCode = verdict(counts)
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)

/** Which vitest projects run, with which filters and environment. */
function chosenRuns() {
  if (flags.has('--update-cases')) {
    return [
      {
        project: 'pure',
        filters: ['test/stories/', 'test/pages.test.ts', 'test/docs.test.ts', 'test/crds.test.ts', ...filters],
        env: { PORTOLAN_UPDATE_CASES: '1' },
      },
    ]
  }
  const reason = installSystemTools()
  if (reason) say(`${reason}; they are skipped`)
  if (flags.has('--fuzz-broker')) {
    const env = { PORTOLAN_CRASHES: process.env.PORTOLAN_CRASHES ?? '100' }
    return [{ project: 'store', filters: filters.length > 0 ? filters : ['test/broker/crash.test.ts'], env }]
  }
  const fuzzed = [...flags].find((flag) => flag.startsWith('--fuzz-'))
  if (fuzzed !== undefined) {
    const seed = process.env.PORTOLAN_SEED ?? String(randomInt(2 ** 31))
    say(`the seed is ${seed}; PORTOLAN_SEED=${seed} repeats this run`)
    const env = {
      PORTOLAN_SEED: seed,
      PORTOLAN_FUZZ_PACKETS: process.env.PORTOLAN_FUZZ_PACKETS ?? '10000',
      PORTOLAN_FUZZ_BPF_PACKETS: process.env.PORTOLAN_FUZZ_BPF_PACKETS ?? '5000000',
    }
    return [{ project: 'kernel', filters: filters.length > 0 ? filters : fuzzFilters[fuzzed], env }]
  }
  return ['pure', 'store', 'kernel'].map((project) => ({ project, filters, env: {} }))
}

function runProject({ project, filters, env }) {
  say(`\n── ${project} tests`)
  const report = join(folder, `${project}.json`)
  const output = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const args = ['run', `--project=${project}`, '--passWithNoTests', ...output, ...filters]
  const code = runShown('node_modules/.bin/vitest', args, env)
  return readCounts(report, code)
}

/** A run that ended badly without a failed test, such as a file that does not load, counts as one failure. */
function readCounts(path, code) {
  if (!existsSync(path)) return { passed: 0, failed: code === 0 ? 0 : 1, skipped: 0 }
  const report = JSON.parse(readFileSync(path, 'utf8'))
  const silent = report.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  ).length
  const failed = report.numFailedTests + silent
  return {
    passed: report.numPassedTests,
    failed: failed === 0 && code !== 0 ? 1 : failed,
    skipped: report.numPendingTests + report.numTodoTests,
  }
}

function addCounts(left, right) {
  return {
    passed: left.passed + right.passed,
    failed: left.failed + right.failed,
    skipped: left.skipped + right.skipped,
  }
}

/** A test that did not run where every test must run is a failure, and so is a run without any test. */
function verdict({ passed, failed, skipped }) {
  const all = process.env.PORTOLAN_REQUIRE_ALL === '1'
  if (all && skipped > 0) say(`PORTOLAN_REQUIRE_ALL=1, and ${skipped} tests were skipped`)
  if (passed + failed === 0) say('no test ran')
  return failed > 0 || passed === 0 || (all && skipped > 0) ? 1 : 0
}
