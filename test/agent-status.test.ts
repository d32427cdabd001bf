/** What a node says of its bindings, hour by hour on a turned clock, and where it says it. */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Failure } from '#base/failure'
import { type StatusPatch, statusFilePath } from '#wire/status-file'
import { noStatus, statusFiles } from '../src/agent/status-sink'
import { type AgentWorld, agentWorld } from './agent/agent-world'
import { modelNode } from './agent/model-kernel'
import { attachment, binding, policy } from './agent/traffic-objects'

let world: AgentWorld
let folder: string

beforeEach(() => {
  world = agentWorld(modelNode())
  folder = mkdtempSync(join(tmpdir(), 'portolan-status-'))
})
afterEach(async () => {
  await world.stop()
  rmSync(folder, { recursive: true, force: true })
})

const objects = [attachment('web', { device: 'eth1' }), binding('web', { egress: 'ping' }), policy('ping')]
const heartbeat = (): string | undefined => world.entry('tenant/web')?.heartbeatTime

test('53: in a quiet hour the only writes are heartbeats, one each, five minutes apart', async () => {
  world.kernel.attach('eth1')
  await world.set(objects)
  await world.start({ mode: 'enforce' })
  expect([world.writes.length, heartbeat()]).toEqual([1, '2026-10-15T12:00:00Z'])
  const beats: string[] = []
  for (let minute = 1; minute <= 60; minute++) {
    await world.advance(60)
    if (heartbeat() !== beats.at(-1)) beats.push(heartbeat() ?? '')
  }
  expect(beats.slice(0, 3)).toEqual(['2026-10-15T12:00:00Z', '2026-10-15T12:05:00Z', '2026-10-15T12:10:00Z'])
  expect([world.writes.length, beats.length]).toEqual([13, 13])
  expect(world.entry('tenant/web')?.egress?.lastTransitionTime).toBe('2026-10-15T12:00:00Z')
})

test('a heartbeat goes by its own entry’s age, not by the agent’s rounds: no gap grows to ten minutes', async () => {
  world.kernel.attach('eth1')
  await world.set(objects)
  await world.start({ mode: 'enforce' })
  await world.advance(299)
  await world.set([...objects.slice(0, 1), binding('web', { egress: 'ping', generation: 4 }), ...objects.slice(2)])
  expect(heartbeat()).toBe('2026-10-15T12:04:59Z')
  await world.advance(300)
  expect([heartbeat(), world.writes.length]).toEqual(['2026-10-15T12:09:59Z', 3])
})

test('a clock that is set forward: within a minute there is a heartbeat of the new time, and rounds go on', async () => {
  world.kernel.attach('eth1')
  await world.set(objects)
  await world.start({ mode: 'enforce' })
  await world.advance(30)
  world.clock.set('2027-01-01T00:00:00Z')
  await world.advance(60)
  expect(heartbeat()).toMatch(/^2027-01-01T00:0[01]:/)
  await world.advance(300)
  expect(heartbeat()).toMatch(/^2027-01-01T00:0[56]:/)
  expect(world.entry('tenant/web')?.egress?.lastTransitionTime).toBe('2026-10-15T12:00:00Z')
})

test('a clock that is set back puts neither a heartbeat nor the next round off', async () => {
  world.kernel.attach('eth1')
  await world.set(objects)
  await world.start({ mode: 'enforce' })
  await world.advance(60)
  world.clock.set('2026-10-15T11:00:00Z')
  await world.set(objects)
  expect([world.writes.length, heartbeat()]).toEqual([2, '2026-10-15T11:00:00Z'])
  await world.advance(300)
  expect(heartbeat()).toBe('2026-10-15T11:05:00Z')
})

test('events that change nothing write nothing; lastTransitionTime moves with the state alone', async () => {
  world.kernel.attach('eth1')
  await world.set(objects)
  await world.start({ mode: 'enforce' })
  await world.advance(10)
  await world.set([...objects, policy('idle')])
  expect(world.writes.length).toBe(1)
  await world.set([objects[0] ?? {}, binding('web', { egress: 'ping', generation: 4 }), policy('ping')])
  expect(world.entry('tenant/web')?.egress).toMatchObject({
    observedGeneration: 4,
    lastTransitionTime: '2026-10-15T12:00:00Z',
  })
  await world.set([objects[0] ?? {}, binding('web', { egress: 'lost', generation: 5 })])
  expect(world.entry('tenant/web')).toMatchObject({
    egress: { state: 'Pending', lastTransitionTime: '2026-10-15T12:00:10Z' },
    ingress: { state: 'Applied', lastTransitionTime: '2026-10-15T12:00:00Z' },
  })
})

test('a restarted agent goes on from what it wrote: no write, and no transition', async () => {
  world.kernel.attach('eth1')
  await world.set(objects)
  await world.start({ mode: 'enforce' })
  await world.stop()
  await world.advance(120)
  await world.start({ mode: 'enforce' })
  expect(world.writes.length).toBe(1)
  await world.advance(180)
  expect([world.writes.length, heartbeat()]).toEqual([2, '2026-10-15T12:05:00Z'])
})

test('63: the entry goes when the attachment leaves the node, and when its binding is another one of that name', async () => {
  world.kernel.attach('eth1')
  await world.set(objects)
  await world.start({ mode: 'enforce' })
  const again = binding('web', { egress: 'ping' })
  const metadata = { ...(again.metadata as object), uid: 'another' }
  await world.set([objects[0] ?? {}, { ...again, metadata }, policy('ping')])
  expect([...world.statuses.values()].map(({ metadata: { uid } }) => uid)).toEqual(['another'])
  await world.set([attachment('web', { device: 'eth1', node: 'n2' }), ...objects.slice(1)])
  expect([world.statuses.size, world.writes.at(-1)]).toEqual([
    0,
    'remove portolan-agent-n1/trafficpolicybindings/tenant/web.json',
  ])
})

test.each([
  ['audit', 'Unsupported'],
  ['enforce', 'Unsupported'],
  ['off', 'Off'],
  [undefined, 'Unknown'],
] as const)('34 and 35: without a datapath, mode %s asked for, the status says %s, and why', async (mode, said) => {
  await world.set([
    ...objects,
    binding('late', { egress: 'lost', attachment: 'late' }),
    attachment('late', { device: 'e' }),
  ])
  let tries = 0
  await world.start({
    ...(mode !== undefined && { mode }),
    open: () => {
      tries += 1
      throw new Failure('kernel.not-permitted', 'it is not permitted; run with the capabilities BPF and NET_ADMIN')
    },
  })
  const message = 'the datapath cannot be opened: it is not permitted; run with the capabilities BPF and NET_ADMIN'
  expect(world.entry('tenant/web')).toMatchObject({ mode: said, egress: { state: 'Failed', message } })
  expect(world.entry('tenant/late')?.egress).toMatchObject({ state: 'Pending', message: expect.stringMatching(/lost/) })
  expect(world.agent().view()).toEqual({ node: 'n1', mode: said.toLowerCase(), interfaces: [], counterReadErrors: 0 })
  expect(world.logged.filter((line) => line === message)).toHaveLength(1)
  await world.advance(60)
  expect(tries, 'at once, then 5, 15 and 35 seconds later').toBe(4)
})

test('a datapath that can be opened later is: what was failed is applied then', async () => {
  world.kernel.attach('eth1')
  await world.set(objects)
  let isAway = true
  await world.start({
    mode: 'enforce',
    open: () => {
      if (isAway) throw new Failure('kernel.exhausted', 'there is not enough memory')
      return world.kernel.open()
    },
  })
  expect(world.entry('tenant/web')).toMatchObject({ mode: 'Unsupported', egress: { state: 'Failed' } })
  isAway = false
  await world.advance(5)
  expect(world.entry('tenant/web')).toMatchObject({ mode: 'Enforce', egress: { state: 'Applied' } })
})

test('35: a mode that cannot be read is Unknown, and one that this version does not know', async () => {
  world.kernel.attach('eth1')
  await world.set(objects)
  await world.start({ open: () => ({ ...world.kernel.open(), mode: () => undefined }) })
  expect(world.entry('tenant/web')).toMatchObject({ mode: 'Unknown', egress: { state: 'Applied' } })
  expect(world.agent().view().mode).toBe('unknown')
})

test('44: a row that cannot be read is left out of the view and counted; the others are told', async () => {
  world.kernel.attach('eth1')
  await world.set(objects)
  await world.start({
    mode: 'enforce',
    open: () => {
      const datapath = world.kernel.open()
      return { ...datapath, readRule: (row) => (row === 0 ? undefined : datapath.readRule(row)) }
    },
  })
  const [view] = world.agent().view().interfaces
  const rules = view?.directions.flatMap(({ installed }) => installed?.rules ?? [])
  expect(rules?.map(({ hits }) => hits)).toEqual([undefined, 0n])
  expect(world.agent().view().counterReadErrors).toBe(2)
})

test('programs of what is attached meanwhile are held as soon as it is heard of, and not again at each pass', async () => {
  world.kernel.attach('eth1')
  await world.set(objects)
  let held = 0
  await world.start({
    mode: 'enforce',
    open: () => {
      const datapath = world.kernel.open()
      return { ...datapath, hold: () => void held++ }
    },
  })
  expect(held).toBe(1)
  await world.set([...objects, policy('other')])
  expect(held).toBe(1)
  world.kernel.attach('eth2')
  await world.hear({ mayBeGone: false })
  expect(held).toBe(2)
})

test('an error that nobody thought of ends one pass, not the agent', async () => {
  world.kernel.attach('eth1')
  await world.set(objects)
  let calls = 0
  await world.start({
    mode: 'enforce',
    open: () => {
      const datapath = world.kernel.open()
      return {
        ...datapath,
        dropGone: () => {
          calls += 1
          if (calls === 1) throw new TypeError('nobody thought of this')
          return datapath.dropGone()
        },
      }
    },
  })
  expect(world.logged.join()).toMatch(/reconciling failed: this is a bug of Portolan/)
  expect(world.entry('tenant/web')).toBeUndefined()
  await world.advance(5)
  expect(world.entry('tenant/web')?.egress?.state).toBe('Applied')
})

const read = (path: string): StatusPatch => JSON.parse(readFileSync(join(folder, path), 'utf8'))

test('files: one an agent and binding, written whole, read back at the start, removed with the entry', async () => {
  world.kernel.attach('eth1')
  await world.set(objects)
  const status = statusFiles(folder, 'n1')
  await world.start({ mode: 'enforce', status })
  const path = statusFilePath('n1', { namespace: 'tenant', name: 'web' })
  expect(read(path)).toMatchObject({
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'TrafficPolicyBinding',
    metadata: { namespace: 'tenant', name: 'web', uid: 'uid-binding-web' },
    status: { nodes: [{ node: 'n1', mode: 'Enforce', egress: { state: 'Applied' } }] },
  })
  expect(readdirSync(folder, { recursive: true }).filter((name) => String(name).includes('part'))).toEqual([])
  await world.stop()
  const before = readFileSync(join(folder, path), 'utf8')
  await world.advance(60)
  await world.start({ mode: 'enforce', status })
  expect(readFileSync(join(folder, path), 'utf8')).toBe(before)
  await world.set([])
  expect(readdirSync(join(folder, 'portolan-agent-n1', 'trafficpolicybindings'))).toEqual([])
})

test('files: another node’s are left alone, one that is cut short is written anew', async () => {
  world.kernel.attach('eth1')
  const other = join(folder, statusFilePath('n2', { namespace: 'tenant', name: 'web' }))
  const own = join(folder, statusFilePath('n1', { namespace: 'tenant', name: 'web' }))
  for (const path of [other, own]) {
    mkdirSync(join(path, '..'), { recursive: true })
    writeFileSync(path, '{"kind": "Traff')
  }
  await world.set(objects)
  await world.start({ mode: 'enforce', status: statusFiles(folder, 'n1') })
  expect(readFileSync(other, 'utf8')).toBe('{"kind": "Traff')
  expect(JSON.parse(readFileSync(own, 'utf8')).status.nodes).toHaveLength(1)
})

test('a status that cannot be written is told once and written when it can be; enforcement does not wait for it', async () => {
  world.kernel.attach('eth1')
  await world.set(objects)
  let isFull = true
  let written = 0
  await world.start({
    mode: 'enforce',
    status: {
      load: async () => [],
      watch: () => ({ refresh: () => {}, close: () => {} }),
      write: async () => {
        if (isFull) throw new Failure('input.unreadable', 'the disk is full')
        written += 1
      },
      remove: async () => {},
    },
  })
  expect(world.kernel.passes('eth1', 'egress')).toBe(true)
  await world.advance(20)
  expect(world.logged.filter((line) => line === 'the disk is full')).toHaveLength(1)
  isFull = false
  await world.advance(5)
  expect(written).toBe(1)
})

test('one that is full fails every status: one line until it is over, however often it is tried, and no health', async () => {
  let isFull = true
  const names = ['web', 'two', 'three']
  await world.set([
    ...names.flatMap((name) => [attachment(name, { device: `${name}0` }), binding(name, { egress: 'ping' })]),
    policy('ping'),
  ])
  const write = async ({ metadata: { name } }: { readonly metadata: { readonly name: string } }): Promise<void> => {
    if (isFull)
      throw new Failure('input.unreadable', `the status ${name}.json cannot be written: ENOSPC; check --status`)
  }
  await world.start({ mode: 'enforce', status: { ...noStatus, write } })
  expect(world.agent().trouble()).toBeUndefined()
  await world.advance(300)
  const errors = (): readonly string[] => world.logged.filter((line) => /cannot be written/.test(line))
  expect(errors()).toEqual(['the status web.json cannot be written: ENOSPC; check --status (and 2 more)'])
  expect(world.agent().trouble()).toBe(errors()[0])
  isFull = false
  await world.advance(10)
  expect(world.agent().trouble()).toBeUndefined()
  isFull = true
  await world.advance(600)
  expect(errors()).toHaveLength(2)
})

test('a status folder that cannot be made is refused at the start, with the path', async () => {
  writeFileSync(join(folder, 'file'), '')
  chmodSync(join(folder, 'file'), 0o600)
  const status = statusFiles(join(folder, 'file'), 'n1')
  await expect(world.start({ status })).rejects.toThrow(/the status .*file.* cannot be written: .*; check --status/)
})
