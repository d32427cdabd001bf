/** Status files that another hand removes, spoils or forges, beside a running agent: they are made good at once. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../src/agent/agent-clock'
import { statusFiles } from '../src/agent/status-sink'
import { type AgentWorld, agentWorld } from './agent/agent-world'
import { modelNode } from './agent/model-kernel'
import { attachment, binding, policy } from './agent/traffic-objects'

let world: AgentWorld
let folder: string
let path: string

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portolan-status-'))
  path = join(folder, 'status/portolan-agent-n1/trafficpolicybindings/tenant/web.json')
  world = agentWorld(modelNode())
  world.kernel.attach('eth1')
  await world.set([attachment('web', { device: 'eth1' }), binding('web', { egress: 'ping' }), policy('ping')])
  await world.start({ mode: 'enforce', status: statusFiles(join(folder, 'status'), 'n1'), clock: systemClock })
})
afterEach(async () => {
  await world.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function until(what: string, isSo: () => boolean): Promise<void> {
  const end = performance.now() + 8000
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`waited in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

const textNow = (): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

test.each<[string, () => void]>([
  ['a file that is removed', () => rmSync(path)],
  ['a folder of a namespace that is removed', () => rmSync(dirname(path), { recursive: true })],
  ['the agent’s folder that is removed', () => rmSync(dirname(dirname(dirname(path))), { recursive: true })],
  ['the whole status folder that is removed', () => rmSync(join(folder, 'status'), { recursive: true })],
  [
    'the whole status folder that is put elsewhere',
    () => renameSync(join(folder, 'status'), join(folder, `away-${performance.now()}`)),
  ],
  ['a file that is overwritten with rubbish', () => writeFileSync(path, '{"half')],
  ['a file that is emptied', () => writeFileSync(path, '')],
  ['an entry that is forged', () => writeFileSync(path, textNow().replaceAll('"Applied"', '"Failed"'))],
  ['an entry of another mode', () => writeFileSync(path, textNow().replace('"Enforce"', '"Off"'))],
])('%s is as the agent wrote it again, and says since when as before', async (_, spoil) => {
  const before = textNow()
  expect(before).toMatch(/"Applied"/)
  for (let round = 1; round <= 2; round++) {
    spoil()
    await until(`round ${round}: ${textNow()}`, () => textNow() === before)
  }
})

test('a file in the place of a folder, or a folder in that of the file, is told, and made good once it is gone', async () => {
  const before = textNow()
  rmSync(path)
  mkdirSync(path)
  await until('it is told', () => /web\.json cannot be written: EISDIR.*; /.test(world.logged.join()))
  rmSync(path, { recursive: true })
  await until('it is there again', () => textNow() === before)
  rmSync(join(folder, 'status'), { recursive: true })
  writeFileSync(join(folder, 'status'), 'a file')
  await until('it is told', () => /the status .* cannot be written: E(EXIST|NOTDIR).*; /.test(world.logged.join()))
  rmSync(join(folder, 'status'))
  await until('it is there again', () => textNow() === before)
})

test('a file of a binding that the agent says nothing of goes, as one of its own that is told no more does', async () => {
  const stray = join(dirname(path), 'stray.json')
  writeFileSync(stray, textNow().replace('"name": "web"', '"name": "stray"'))
  await until('it is gone', () => !existsSync(stray))
  expect(readdirSync(dirname(path))).toEqual(['web.json'])
})

test('a hand that keeps changing them is told once, and gets no contest: regular rounds alone write them anew', async () => {
  let changes = 0
  const hand = setInterval(() => {
    if (!/"Failed"/.test(textNow())) changes += 1
    writeFileSync(path, textNow().replaceAll('"Applied"', '"Failed"'))
  }, 5)
  try {
    await until('it is told', () =>
      world.logged.some((line) => /another hand keeps changing the statuses of n1/.test(line)),
    )
    const before = changes
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(changes - before).toBeLessThanOrEqual(1)
  } finally {
    clearInterval(hand)
  }
  expect(world.logged.filter((line) => /another hand/.test(line))).toHaveLength(1)
})
