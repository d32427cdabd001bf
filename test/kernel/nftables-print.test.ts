/** The gallery of statements in a kernel: nft lists each of them in the words that the printers use. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { printScript } from '#compile/nftables/print-script'
import { rulesetOf } from '#compile/nftables/ruleset'
import { type Exhibit, gallery, type Wing } from '../golden/nftables-gallery'
import { galleryTable } from '../golden/nftables-gallery-table'
import { describeKernel } from './describe-kernel'
import { createNamespaces, inside, removeNamespaces } from './namespace'
import { computedListing, linesOf, listRuleset, loadRuleset } from './nftables-kernel'
import { findLacks, type Lacks } from './nftables-lacks'
import { mustRun } from './run-command'

describeKernel('nftables statements', () => {
  let namespace = ''
  let lacks: Lacks = () => []

  beforeAll(() => {
    namespace = createNamespaces(['nft'])[0] ?? ''
    lacks = findLacks(namespace)
    mustRun(inside(namespace, ['ip', 'link', 'set', 'lo', 'up']))
  })
  afterAll(() => removeNamespaces([namespace]))

  /** Returns what the kernel lacks for them; fails where it refuses them without such a reason, or lists them otherwise. */
  function lacking(wing: Wing, exhibits: readonly Exhibit[]): readonly string[] {
    const ruleset = rulesetOf([
      galleryTable(
        wing,
        exhibits.map(([, ...statements]) => statements),
      ),
    ])
    const loaded = loadRuleset(namespace, ruleset)
    if (!loaded.ok) {
      const missing = lacks(printScript(ruleset))
      expect(missing, loaded.message).not.toEqual([])
      return missing
    }
    const [computed, listed] = [computedListing(ruleset), listRuleset(namespace)]
    expect(computed.text).toBe(listed.text)
    expect(linesOf(computed.json)).toEqual(linesOf(listed.json))
    return []
  }

  /** All at once, and one by one where the kernel does not know some of them. */
  test.each(gallery.map((wing) => [`${wing.family} ${wing.type} ${wing.hook}`, wing] as const))('%s', (name, wing) => {
    if (lacking(wing, wing.exhibits).length === 0) return
    const missing = wing.exhibits.flatMap((exhibit) => lacking(wing, [exhibit]))
    console.log(
      `${name}: this kernel lacks something for ${missing.length} of ${wing.exhibits.length}: ${missing.join(', ')}`,
    )
  })
})
