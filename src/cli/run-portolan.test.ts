/** What every command has in common: help, and options given twice. */
import { expect, test } from 'vitest'
import { loadCommands } from './commands'
import { buildProgram, runPortolan } from './run-portolan'

async function run(...argv: string[]): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  let out = ''
  let err = ''
  const stdin = (async function* () {})()
  const io = {
    out: (text: string) => {
      out += text
    },
    err: (text: string) => {
      err += text
    },
    stdin,
    isTerminal: false,
  }
  return { code: await runPortolan(argv, io), out, err }
}

const io = { out: () => {}, err: () => {}, stdin: (async function* () {})(), isTerminal: false }
const top = buildProgram(await loadCommands([]), io, () => {}).commands
const names = top.map((command) => command.name())
const nested = top.flatMap((command) => command.commands.map((inner) => `${command.name()} ${inner.name()}`))

test.each([...names, ...nested])('help of %s has exit codes and examples, and fits 80 columns', async (name) => {
  const { out, code } = await run(...name.split(' '), '--help')
  expect(code).toBe(0)
  expect(out).toContain('Exit codes:')
  expect(out).toContain('Examples:')
  expect(out.split('\n').filter((line) => line.length > 80)).toEqual([])
})

test.each(names)('asking for %s loads it and nothing else', async (name) => {
  const program = buildProgram(await loadCommands([name, '--help']), io, () => {})
  expect(program.commands.map((command) => command.name())).toEqual([name])
})

test('help of a command that is not there is an error', async () => {
  const { code, err } = await run('bogus', '--help')
  expect(code).toBe(2)
  expect(err).toContain("unknown command 'bogus'")
})

test('an option whose parser gathers values says that it may repeat, which is what lets it', async () => {
  const program = buildProgram(await loadCommands([]), io, () => {})
  const all = program.commands.flatMap((command) => [command, ...command.commands])
  const silent = all.flatMap((command) =>
    command.options
      .filter(({ parseArg, argChoices }) => argChoices === undefined && (parseArg?.length ?? 0) > 1)
      .filter(({ description }) => !description.includes('may repeat'))
      .map(({ long }) => `${command.name()} ${long}`),
  )
  expect(silent).toEqual([])
})

test('an option with one value is taken once', async () => {
  const { code, err } = await run('trace', '--to', '10.0.0.1:1', '--to', '10.0.0.2:1')
  expect(code).toBe(2)
  expect(err).toBe('portolan: --to is given twice; leave one of them out\n')
})
