/** Packets through every ruleset in test/saves: each walks as traced, and the answer is what happened. */
import { expect, test } from 'vitest'
import { parseIpset } from '#compile/iptables/parse-ipset'
import { parseSave } from '#compile/iptables/parse-save'
import { surveyServices } from '#verify/survey-services'
import { answerDifference } from './compare-answers'
import { comparePaths } from './compare-paths'
import { describeKernel } from './describe-kernel'
import { createNode } from './kernel-node'
import { loadNftables } from './rules'
import { addressesOf, linkTo, packetsOfInterest, specOfSave } from './save-node'
import { bySender } from './sent-packet'
import { loadSave, placeOfSave, readCompanion, readSave, saveNames } from './stored-saves'
import { tracePackets } from './trace-packets'
import { startTrace } from './trace-reader'

describeKernel('the saves', () => {
  test.each(saveNames)('packets through %s walk as traced', (name) => {
    const save = readSave(name)
    const { family } = placeOfSave(save)
    const spec = specOfSave(name, save)
    const { rulesets } = parseSave(save, `${name}.save`)
    const [ruleset] = rulesets
    if (ruleset === undefined || rulesets.length > 1) throw new Error('not one ruleset')
    const { sets } = parseIpset(readCompanion(name, 'ipset') ?? '', `${name}.ipset`)
    const known = { ruleset, sets, nodeIps: addressesOf(spec) }
    const packets = packetsOfInterest(spec, family, surveyServices({ ...known, rulesets }))
    expect(packets.length).toBeGreaterThanOrEqual(20)
    const node = createNode(spec)
    const reader = startTrace(node)
    try {
      // Rules of the legacy engine are traced in the other one: the two hold the same rules.
      loadSave(node, name, { variant: 'nft', family })
      loadNftables(node, 'table inet tracking { chain unused { ct state invalid; }; }')
      const differences = tracePackets({ node, reader }, bySender(packets)).flatMap((seen) => {
        const compared = comparePaths(seen, known, { linkTo: (source) => linkTo(spec, source) })
        return compared.difference?.shown ?? answerDifference(seen, compared) ?? []
      })
      expect(differences.length, differences.slice(0, 3).join('\n')).toBe(0)
    } finally {
      reader.close()
      node.close()
    }
  })
})
