/** Sets the checkout up and prints the performance table. */
import { buildProgram, installPackages, runShown } from './setup.mjs'

installPackages()
buildProgram()
process.exitCode = runShown(process.execPath, ['--import', 'tsx', 'bench/run-bench.ts', ...process.argv.slice(2)])
