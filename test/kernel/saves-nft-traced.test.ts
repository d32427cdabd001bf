/** Packets through nftables rules of other makers: the kernel's walk is one of Portolan's paths. */
import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Family } from '#base/ip'
import { parseNftList } from '#compile/nftables/parse-list'
import { rulesetOf } from '#compile/nftables/ruleset'
import { layoutSpec, nodeAddresses } from '../random/node-layout'
import { randomOf, seedOfRun } from '../random/random'
import { traceInputOf } from '../random/random-packets'
import { randomTraffic } from '../random/random-traffic'
import { compareNftPaths } from './compare-nft-paths'
import { describeKernel } from './describe-kernel'
import { createNode, type KernelNode } from './kernel-node'
import { listRuleset, loadScript } from './nftables-kernel'
import { bySender } from './sent-packet'
import { tracePackets } from './trace-packets'
import { startTrace, type TraceReader } from './trace-reader'

const folder = new URL('../saves-nft/', import.meta.url)

/**
 * Listings that `nft -f` takes back: those of iptables-nft hold `xt` statements, which it does not, and those of the
 * netdev family name devices that this node does not have.
 */
const names = readdirSync(folder)
  .filter((name) => name.endsWith('.nft') && !/xt (match|target)|^table netdev/m.test(textOf(name)))
  .map((name) => name.replace(/\.nft$/, ''))

/**
 * nft 1.0.6 lists some keys of connection tracking in a way that it cannot read itself, and does not list the chains that
 * stand in a rule, which the kernel's trace names.
 */
function textOf(file: string): string {
  const text = readFileSync(new URL(file, folder), 'utf8')
  return text
    .replaceAll(/^.*\[invalid type\].*\n/gm, '')
    .replaceAll(/^.*(?:jump|goto) \{\n(?:\t{3}.*\n)*\t\t\}.*\n/gm, '')
}

const packetCount = 40

describeKernel('nftables rulesets of many makers', () => {
  let node: KernelNode
  let reader: TraceReader

  beforeAll(() => {
    node = createNode(layoutSpec)
    reader = startTrace(node)
  })
  afterAll(() => {
    reader?.close()
    node?.close()
  })

  test('there are rulesets of at least eight makers', () => {
    expect(names.length).toBeGreaterThanOrEqual(8)
  })

  test.each(names)('%s: every packet walks as traced', (name) => {
    const listed = parseNftList(listRuleset(node.namespace).text, 'kernel').ruleset
    const old = [...listed.tables.values()].filter((table) => table.name !== 'portolan-trace')
    const drop = old.map((table) => `delete table ${table.family} ${table.name}\n`).join('')
    const loaded = loadScript(node.namespace, `${drop}${textOf(`${name}.nft`)}`)
    if (!loaded.ok) expect.fail(loaded.message)
    const held = parseNftList(listRuleset(node.namespace).text, 'kernel')
    const nft = rulesetOf([...held.ruleset.tables.values()].filter((table) => table.name !== 'portolan-trace'))
    const random = randomOf(seedOfRun())
    for (const family of ['ipv4', 'ipv6'] satisfies Family[]) {
      const packets = bySender(
        Array.from({ length: packetCount }, (_, number) => randomTraffic(random, family, number)),
      )
      for (const seen of tracePackets({ node, reader }, packets)) {
        const input = { ...traceInputOf(seen.packet, { rulesets: [], nodeIps: nodeAddresses[family] }), nft }
        const difference = compareNftPaths(seen, input, nft)
        if (difference !== undefined) expect.fail(difference)
      }
    }
  })
})
