/** Sets the checkout up and shows the demonstration. */
import { buildProgram, installPackages, runShown } from './setup.mjs'

installPackages()
buildProgram()
process.exitCode = runShown(process.execPath, ['bin/portolan.js', 'demo', ...process.argv.slice(2)])
