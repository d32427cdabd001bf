/** Runs one command line: the only place where failures become sentences and exit codes. */
import { Command, CommanderError } from 'commander'
import { Failure, failureCodes } from '#base/failure'
import type { AddCommand, ExitCode } from './command'
import { commandHelp } from './command-help'
import { loadCommands } from './commands'
import type { Io } from './io'
import { version } from './version'

/** The exit code of the command line `argv` (without the program's own name). */
export async function runPortolan(argv: readonly string[], io: Io): Promise<ExitCode> {
  let code: ExitCode = 0
  try {
    const program = buildProgram(await loadCommands(argv), io, (ended) => {
      code = ended
    })
    await program.parseAsync([...withoutIdleHelp(program, argv)], { from: 'user' })
    return code
  } catch (error) {
    return explainError(error, io)
  }
}

export function buildProgram(commands: readonly AddCommand[], io: Io, end: (code: ExitCode) => void): Command {
  const program = new Command('portolan')
    .description('Charts a Kubernetes cluster’s network: where a packet goes, who is at each end, and why.')
    .version(version)
    .exitOverride()
    .showHelpAfterError('(add --help for all options)')
    .configureOutput({ writeOut: io.out, writeErr: io.err })
    .configureHelp({ helpWidth: 80, minWidthToWrap: 20 })
  const runOn = (other: Io, argv: readonly string[]): Promise<ExitCode> => runPortolan(argv, other)
  for (const add of commands) add(program, { io, end, runOn })
  for (const command of program.commands) settle(command, program, command.name())
  return program
}

/** `name` is the words that call the command: `policy eval`. */
function settle(command: Command, above: Command, name: string): void {
  command.copyInheritedSettings(above).addHelpText('after', commandHelp(name))
  refuseRepeats(command)
  for (const one of command.commands) settle(one, command, `${name} ${one.name()}`)
}

/** Help for a command that is not there is the error that the command is not there. */
function withoutIdleHelp(program: Command, argv: readonly string[]): readonly string[] {
  const name = argv.find((word) => !word.startsWith('-'))
  const isKnown = name === undefined || name === 'help' || program.commands.some((command) => command.name() === name)
  return isKnown ? argv : argv.filter((word) => word !== '--help' && word !== '-h')
}

/** Of an option with one value the later would win in silence; those that gather say so in their help. */
function refuseRepeats(command: Command): void {
  for (const option of command.options) {
    if (option.isBoolean() || option.negate || option.variadic || option.description.includes('may repeat')) continue
    let count = 0
    command.on(`option:${option.name()}`, () => {
      count++
      if (count === 2) throw new Failure('usage.bad-argument', `${option.long} is given twice; leave one of them out`)
    })
  }
}

function explainError(error: unknown, io: Io): ExitCode {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  if (error instanceof Failure) {
    io.err(`portolan: ${error.message}\n`)
    return failureCodes[error.code]
  }
  const what = error instanceof Error ? (error.stack ?? error.message) : String(error)
  const shown = process.env.PORTOLAN_DEBUG === undefined ? what.split('\n')[0] : what
  io.err(`portolan: this is a bug of Portolan: ${shown}\n`)
  io.err('Please report it with the command line and the input; PORTOLAN_DEBUG=1 shows where it happened.\n')
  return 4
}
