/** Runs every static check, shows each one's name and result, and fails when any of them failed. */
import { installPackages, runShown, say } from './setup.mjs'

const steps = [
  { name: 'format and lint', command: ['biome', 'ci', '.'] },
  { name: 'types', command: ['tsc', '-p', 'tsconfig.json'] },
  { name: 'types of the pure rooms', command: ['tsc', '-p', 'tsconfig.pure.json'] },
  { name: 'unused files, exports and packages', command: ['knip'] },
]

installPackages()
const results = steps.map(({ name, command: [program, ...args] }) => {
  say(`\n── ${name}: ${program} ${args.join(' ')}`)
  const started = Date.now()
  const ok = runShown(`node_modules/.bin/${program}`, args) === 0
  return `${ok ? 'ok    ' : 'FAILED'} ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`
})
say(`\n${results.join('\n')}`)
process.exitCode = results.some((line) => line.startsWith('FAILED')) ? 1 : 0
