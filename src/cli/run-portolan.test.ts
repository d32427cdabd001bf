/** What every command has in common: help, and options given twice. */

import { expect, test } from 'vitest'
import { quietIo, runWords } from '../../test/run-words'
import type { Captured } from './capture'
import { loadCommands } from './commands'
import { buildProgram } from './run-portolan'

function run(...argv: string[]): Promise<Captured> {
  return runWords(argv)
}

const top = buildProgram(await loadCommands([]), quietIo, () => {}).commands
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
  const program = buildProgram(await loadCommands([name, '--help']), quietIo, () => {})
  expect(program.commands.map((command) => command.name())).toEqual([name])
})

test('help of a command that is not there is an error', async () => {
  const { code, err } = await run('bogus', '--help')
  expect(code).toBe(2)
  expect(err).toContain("unknown command 'bogus'")
})

test('an option whose parser gathers values says that it may repeat, which is what lets it', async () => {
  const program = buildProgram(await loadCommands([]), quietIo, () => {})
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
