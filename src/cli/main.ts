/** The program: one command line in, one exit code out. */
import { processIo } from './io'
import { runPortolan } from './run-portolan'

// A reader that has seen enough (`| head`) closes the pipe: that is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})

process.exitCode = await runPortolan(process.argv.slice(2), processIo())
