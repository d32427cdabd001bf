/** The program: one command line in, one exit code out. */
import { processIo, watchStreams } from './io'
import { runPortolan } from './run-portolan'

watchStreams()
const code = await runPortolan(process.argv.slice(2), processIo())
process.exitCode = code
