/** The gallery of statements in a kernel: nft lists each of them in the words that the printers use. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { rulesetOf } from '#compile/nftables/ruleset'
import { type Exhibit, gallery, type Wing } from '../golden/nftables-gallery'
import { galleryTable } from '../golden/nftables-gallery-table'
import { describeKernel } from './describe-kernel'
import { createNamespaces, inside, removeNamespaces } from './namespace'
import { computedListing, linesOf, listRuleset, loadRuleset } from './nftables-kernel'
import { mustRun } from './run-command'

/** What nft says when the kernel was built without something. */
const isMissing = /not supported|No such file or directory|Protocol wrong type/

describeKernel('nftables statements', () => {
  let namespace = ''

  beforeAll(() => {
    namespace = createNamespaces(['nft'])[0] ?? ''
    mustRun(inside(namespace, ['ip', 'link', 'set', 'lo', 'up']))
  })
  afterAll(() => removeNamespaces([namespace]))

  /** Returns why the kernel refuses them, and fails where it lists them otherwise. */
  function refusal(wing: Wing, exhibits: readonly Exhibit[]): string | undefined {
    const ruleset = rulesetOf([
      galleryTable(
        wing,
        exhibits.map(([, ...statements]) => statements),
      ),
    ])
    const loaded = loadRuleset(namespace, ruleset)
    if (!loaded.ok) return loaded.message
    const [computed, listed] = [computedListing(ruleset), listRuleset(namespace)]
    expect(computed.text).toBe(listed.text)
    expect(linesOf(computed.json)).toEqual(linesOf(listed.json))
    return undefined
  }

  /** All at once, and one by one where the kernel does not know some of them. */
  test.each(gallery.map((wing) => [`${wing.family} ${wing.type} ${wing.hook}`, wing] as const))('%s', (name, wing) => {
    if (refusal(wing, wing.exhibits) === undefined) return
    const refused = wing.exhibits.flatMap((exhibit) => refusal(wing, [exhibit]) ?? [])
    expect(refused.filter((message) => !isMissing.test(message))).toEqual([])
    console.log(`${name}: this kernel lacks ${refused.length} of ${wing.exhibits.length}: ${refused.join('\n')}`)
  })
})
