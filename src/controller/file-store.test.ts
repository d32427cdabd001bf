/** Objects and statuses in real files: what agents and the controller write there is read, and lost objects take theirs along. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { openFileStore } from './file-store'
import { type Controller, type ControllerClock, startController } from './start-controller'

const folders: string[] = []
const controllers: Controller[] = []
afterEach(async () => {
  for (const one of controllers.splice(0)) await one.stop()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

const start = Date.parse('2026-10-15T12:05:00Z')
/** A clock that stands: nothing here waits for it. */
const clock: ControllerClock = { now: () => start, after: () => () => {} }

const binding = `apiVersion: portolan.dev/v1alpha1
kind: VPCAttachment
metadata: {namespace: tenant, name: web-0}
status: {node: n1}
---
apiVersion: portolan.dev/v1alpha1
kind: TrafficPolicyBinding
metadata: {namespace: tenant, name: web-0, generation: 3}
spec: {vpcAttachmentRef: {name: web-0}}
`

function setUp() {
  const root = mkdtempSync(join(tmpdir(), 'portolan-controller-'))
  folders.push(root)
  const place = { from: join(root, 'objects.yaml'), status: join(root, 'status') }
  writeFileSync(place.from, binding)
  return place
}

function agentWrites(status: string, node: string, rest: object = {}): void {
  const side = { state: 'Applied', observedGeneration: 3, lastTransitionTime: '2026-10-15T12:00:00Z' }
  const entry = { node, ingress: side, egress: side, mode: 'Enforce', heartbeatTime: '2026-10-15T12:05:00Z', ...rest }
  const path = join(status, `portolan-agent-${node}/trafficpolicybindings/tenant/web-0.json`)
  mkdirSync(dirname(path), { recursive: true })
  const metadata = { namespace: 'tenant', name: 'web-0' }
  const patch = {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'TrafficPolicyBinding',
    metadata,
    status: { nodes: [entry] },
  }
  writeFileSync(path, JSON.stringify(patch))
}

const ownFile = (status: string): string => join(status, 'portolan-controller/trafficpolicybindings/tenant/web-0.json')

function enforcingOf(status: string): string {
  if (!existsSync(ownFile(status))) return 'nothing'
  const { conditions } = JSON.parse(readFileSync(ownFile(status), 'utf8')).status as {
    conditions: { type: string; status: string; reason: string }[]
  }
  const found = conditions.find(({ type }) => type === 'Enforcing')
  return `${found?.status}/${found?.reason}`
}

async function until(what: () => unknown, wanted: unknown): Promise<void> {
  for (let tries = 0; tries < 200 && what() !== wanted; tries++) await new Promise((done) => setTimeout(done, 20))
  expect(what()).toBe(wanted)
}

function run(place: ReturnType<typeof setUp>) {
  const warnings: string[] = []
  const log = { info: () => {}, error: () => {}, warn: (text: unknown) => void warnings.push(String(text)) }
  controllers.push(startController({ store: openFileStore({ ...place, from: [place.from] }), clock, log }))
  return warnings
}

test('what agents write is answered, from folders that were not there before, and entries of others change nothing', async () => {
  const place = setUp()
  run(place)
  await until(() => enforcingOf(place.status), 'False/Pending')
  agentWrites(place.status, 'n2')
  agentWrites(place.status, 'n1')
  await until(() => enforcingOf(place.status), 'True/Enforcing')
  agentWrites(place.status, 'n1', { mode: 'Audit' })
  await until(() => enforcingOf(place.status), 'False/Audit')
})

test('the conditions of an object that is gone go too, and a half-written or foreign file is told and left alone', async () => {
  const place = setUp()
  mkdirSync(join(place.status, 'portolan-agent-n1/trafficpolicybindings/tenant'), { recursive: true })
  const broken = join(place.status, 'portolan-agent-n1/trafficpolicybindings/tenant/web-0.json')
  writeFileSync(broken, '{"half":')
  const warnings = run(place)
  await until(() => enforcingOf(place.status), 'False/Pending')
  expect(warnings.filter((one) => one.includes(broken))).toHaveLength(1)
  writeFileSync(place.from, binding.split('---\n')[0] ?? '')
  await until(() => existsSync(ownFile(place.status)), false)
  expect(existsSync(broken)).toBe(true)
})

test('52: of a file that is broken in part nothing is concluded, and nothing is dropped', async () => {
  const place = setUp()
  run(place)
  await until(() => enforcingOf(place.status), 'False/Pending')
  await controllers.pop()?.stop()
  writeFileSync(place.from, `${binding.split('---\n')[0]}---\nkind: [\n`)
  const read = await openFileStore({ ...place, from: [place.from] }).read()
  expect([read.isPartial, read.cluster.trafficPolicyBindings.size]).toEqual([true, 0])
  expect(existsSync(ownFile(place.status))).toBe(true)
})

test('read once: the statuses of all are in the objects', async () => {
  const place = setUp()
  agentWrites(place.status, 'n1')
  agentWrites(place.status, 'n2')
  const { cluster } = await openFileStore({ ...place, from: [place.from] }).read()
  expect(cluster.trafficPolicyBindings.get('tenant/web-0')?.status?.nodes?.map(({ node }) => node)).toEqual([
    'n1',
    'n2',
  ])
  const alone = await openFileStore({ from: [place.from] }).read()
  expect(alone.cluster.trafficPolicyBindings.get('tenant/web-0')?.status).toBeUndefined()
})
