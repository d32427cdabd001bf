/** The gallery of statements in a kernel: nft lists each of them in the words that the printers use. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { rulesetOf } from '#compile/nftables/ruleset'
import { gallery } from '../golden/nftables-gallery'
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

  test.each(gallery.map((wing) => [`${wing.family} ${wing.type} ${wing.hook}`, wing] as const))('%s', (_, wing) => {
    const refused: string[] = []
    for (const [text, ...statements] of wing.exhibits) {
      const ruleset = rulesetOf([galleryTable(wing, statements)])
      const loaded = loadRuleset(namespace, ruleset)
      if (!loaded.ok && isMissing.test(loaded.message)) {
        refused.push(`${text}: ${loaded.message.split('\n')[0]}`)
        continue
      }
      expect(loaded.ok ? '' : loaded.message, text).toBe('')
      const [computed, listed] = [computedListing(ruleset), listRuleset(namespace)]
      expect(computed.text, text).toBe(listed.text)
      expect(linesOf(computed.json), text).toEqual(linesOf(listed.json))
    }
    if (refused.length > 0) console.log(`this kernel lacks:\n${refused.join('\n')}`)
    expect(refused.length).toBeLessThan(wing.exhibits.length / 4)
  })
})
