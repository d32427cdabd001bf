/** Cilium's maps in the kernel: they load with their layouts and read back equal, and its prefix trie answers as we compute. */

import { closeSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { policyValueBytes } from '#compile/cilium/dump-policy-maps'
import type { DumpedMap } from '#compile/cilium/dumped-map'
import { noAuth, type PolicyEntry, type PolicyKey, policyKeyBytes } from '#compile/policy/cilium-policy-entry'
import { lookUpPolicy, packetKey } from '#compile/policy/cilium-policy-lookup'
import { buildPolicyMap } from '#compile/policy/cilium-policy-map'
import type { Direction } from '#compile/policy/policy-rule'
import { openBpf } from '#kernel/bpf-sys'
import { openPin } from '#kernel/bpffs'
import { loadMaps, readTable } from '#kernel/cilium-maps'
import { type BpfMap, closeMap, createMap, lookUp, nextKey, readMapShape, remove, update } from '#kernel/maps'
import { type CiliumVersion, ciliumVersions } from '#model/cilium-version'
import { askMaps, egressPolicy, service, worldConfig } from '../cilium/ask-maps'
import { cnp } from '../policy/ask-cilium'
import { node, pod } from '../policy/policy-objects'
import { type Random, randomOf, seedOfRun } from '../random/random'
import { runWords } from '../run-words'
import { type BpffsFolder, createBpffsFolder } from './bpffs-folder'
import { describeKernel } from './describe-kernel'

const bpf = openBpf()

const objects = [
  { ...node('node-b', '192.168.1.11'), spec: { podCIDRs: ['10.244.2.0/24'] } },
  node('node-gw', '192.168.1.20', { egress: 'true' }),
  pod('business/six', { app: 'server' }, { ip: 'fd00:2::6', nodeName: 'node-a' }),
  egressPolicy(),
  service('business/server', {
    type: 'NodePort',
    ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }],
    sessionAffinity: 'ClientIP',
  }),
  cnp('business/server', {
    endpointSelector: { matchLabels: { app: 'server' } },
    ingress: [
      { fromEndpoints: [{ matchLabels: { app: 'client' } }], toPorts: [{ ports: [{ port: '8080', endPort: 8090 }] }] },
    ],
    ingressDeny: [{ fromCIDR: ['198.51.100.0/24'] }],
  }),
]

const config = {
  ...worldConfig,
  'enable-ipv6': 'true',
  'enable-ip-masq-agent': 'true',
  'bpf-lb-algorithm': 'maglev',
  'bpf-lb-maglev-table-size': '251',
}

function keysOf(map: BpfMap): readonly string[] {
  const keys: string[] = []
  for (let key = nextKey(bpf, map); key !== undefined; key = nextKey(bpf, map, key)) keys.push(key.toString('hex'))
  return keys.sort()
}

function shapeOf({ layout }: DumpedMap) {
  const { type, keySize, valueSize, maxEntries } = layout
  return { name: layout.name.slice(0, 15), type, keySize, valueSize, maxEntries }
}

describeKernel('maps of Cilium', () => {
  let folder: BpffsFolder

  beforeAll(() => {
    folder = createBpffsFolder()
  })
  afterAll(() => folder.remove())

  test.each(ciliumVersions)('of version %s load with their layouts and read back equal', (version) => {
    const { dumped } = askMaps(objects, { version, config })
    const loaded = loadMaps(join(folder.path, 'maps'), dumped)
    expect(loaded.length).toBeGreaterThan(12)
    for (const map of dumped) {
      const found = loaded.find(({ name }) => name === map.layout.name)
      if (found === undefined) continue
      const fd = openPin(bpf, found.path) ?? -1
      const opened = { fd, shape: shapeOf(map) }
      expect(readMapShape(bpf, fd)).toMatchObject(shapeOf(map))
      expect(keysOf(opened)).toEqual(map.rows.map(({ keyBytes }) => Buffer.from(keyBytes).toString('hex')).sort())
      for (const { keyBytes, valueBytes } of map.inner === undefined ? map.rows : []) {
        expect(lookUp(bpf, opened, keyBytes)).toEqual(Buffer.from(valueBytes))
      }
      closeSync(fd)
    }
  })

  test('the command loads them, and says what it wrote', async () => {
    const at = join(folder.path, 'command')
    const words = ['maps', '--from', 'samples/cilium', '--node', 'node-a', '--load', at]
    const { code, out } = await runWords(words)
    expect(code).toBe(0)
    expect(out).toMatch(new RegExp(`^${at}/cilium_ipcache_v2 +15 rows written and read back$`, 'm'))
  })

  test.each(ciliumVersions)(
    'of version %s: what the kernel’s trie finds for a packet is what we compute',
    (version) => {
      const shape = { ...policyShape(version), name: 'portolan_trie' }
      const trie = createMap(bpf, shape)
      for (let round = 0; round < 120; round++) {
        const seed = seedOfRun() + round
        const random = randomOf(seed)
        const map = buildPolicyMap(randomEntries(random), version)
        for (const entry of map.entries) {
          const value = policyValueBytes(
            { entry, proxyPort: entry.redirect === undefined ? 0 : 10000, cookie: 0 },
            version,
          )
          update(bpf, trie, policyKeyBytes(entry.key), value)
        }
        for (let packet = 0; packet < 40; packet++) {
          const key = randomPacket(random)
          const found = lookUpPolicy(map, key)
          const computed =
            found === undefined ? 'none' : found.chosen.isDeny ? 'deny' : `allow ${found.chosen.redirect !== undefined}`
          expect(decide(trie, key, version), `seed ${seed}, packet ${JSON.stringify(key)}`).toBe(computed)
        }
        for (const entry of map.entries) remove(bpf, trie, policyKeyBytes(entry.key))
      }
      closeMap(trie)
    },
  )

  test('Maglev tables read back through the map of maps', () => {
    const { dumped } = askMaps(objects, { config })
    const map = dumped.find(({ layout }) => layout.name === 'cilium_lb4_maglev')
    const [loaded] = loadMaps(
      join(folder.path, 'tables'),
      dumped.filter((one) => one === map),
    )
    const opened = { fd: openPin(bpf, loaded?.path ?? '') ?? -1, shape: shapeOf(map as DumpedMap) }
    expect(map?.rows).toHaveLength(1)
    for (const row of map?.rows ?? []) {
      const table = map?.inner?.get(row) ?? new Uint32Array()
      const id = lookUp(bpf, opened, row.keyBytes)?.readUInt32LE(0) ?? 0
      expect(readTable(bpf, id, table.byteLength)).toEqual(Buffer.from(table.buffer))
    }
    closeSync(opened.fd)
  })
})

function policyShape(version: CiliumVersion) {
  const { layout } = askMaps([], { version }).dumped.find(({ layout: one }) => one.holds.includes('business/a')) ?? {}
  if (layout === undefined) throw new Error('no policy map')
  const { type, keySize, valueSize } = layout
  return { type, keySize, valueSize, maxEntries: 256 }
}

const peer = 1001

function randomPort(random: Random): Pick<PolicyKey, 'protocol' | 'port' | 'length'> {
  const length = random.pick([0, 8, 16, 20, 21, 22, 23, 24, 24, 24])
  if (length === 0) return { protocol: 0, port: 0, length }
  const bits = length - 8
  const port = bits === 0 ? 0 : (random.between(0, 24) >>> (16 - bits)) << (16 - bits)
  return { protocol: random.pick([6, 6, 17]), port, length }
}

function randomEntries(random: Random): readonly PolicyEntry[] {
  return Array.from({ length: random.between(0, 14) }, (): PolicyEntry => {
    const isDeny = random.chance(0.3)
    const priority = random.pick([1, 60, 101, 126])
    const hasRedirect = !isDeny && random.chance(0.3)
    return {
      key: {
        direction: random.pick<Direction>(['ingress', 'egress']),
        identity: random.pick([0, peer, peer, 16777217]),
        ...randomPort(random),
      },
      isDeny,
      auth: noAuth,
      priority: 0,
      origins: [],
      ...(hasRedirect && { redirect: { parser: `parser ${priority}`, priority } }),
    }
  })
}

function randomPacket(random: Random): PolicyKey {
  const direction = random.pick<Direction>(['ingress', 'egress'])
  return packetKey({
    direction,
    identity: random.pick([peer, 16777217, 2]),
    protocol: random.pick([6, 17]),
    port: random.between(0, 26),
  })
}

/** As bpf/lib/policy.h decides, from nothing but the two values that the trie finds. */
function decide(trie: BpfMap, packet: PolicyKey, version: CiliumVersion): string {
  const own = lookUp(bpf, trie, policyKeyBytes(packet))
  const open = lookUp(bpf, trie, policyKeyBytes({ ...packet, identity: 0 }))
  const chosen = own === undefined || open === undefined ? (own ?? open) : prefersOpen(own, open, version) ? open : own
  if (chosen === undefined) return 'none'
  return ((chosen[2] ?? 0) & 1) === 1 ? 'deny' : `allow ${chosen.readUInt16BE(0) !== 0}`
}

function prefersOpen(own: Buffer, open: Buffer, version: CiliumVersion): boolean {
  const [ownFlags, openFlags] = [own[2] ?? 0, open[2] ?? 0]
  if (version === '1.16') return step(openFlags) < step(ownFlags)
  const isLonger = openFlags >> 3 > ownFlags >> 3
  if (version === '1.19') {
    const [one, other] = [own.readUInt32LE(4), open.readUInt32LE(4)]
    return one === other ? isLonger : other > one
  }
  if ((ownFlags & 1) === 1) return false
  if ((openFlags & 1) === 1) return true
  const [one, other] = [own[4] ?? 0, open[4] ?? 0]
  return one === other ? isLonger : other > one
}

/** By the wildcards of the value: port and protocol, protocol, neither. */
function step(flags: number): number {
  return (flags & 2) !== 0 ? 2 : (flags & 4) !== 0 ? 1 : 0
}
