/** The kernel's walk through nftables rules against the paths that Portolan finds: the same rules, verdicts and fate. */
import type { Ruleset } from '#compile/nftables/ruleset'
import { isIptablesRule } from '#trace/hop-rule'
import type { HopEvent } from '#trace/path'
import { type RulesetTraceInput, walkEveryPath } from '#trace/trace-ruleset'
import type { Outcome } from '#trace/walk-hooks'
import { agreesWithPacket } from './known-answers'
import type { PacketOutcome } from './trace-packets'
import { fateDifference, fateOfKernel, fateOfPath } from './walk-lines'

/** Undefined when one of the paths is the kernel's walk; else both, side by side. */
export function compareNftPaths(seen: PacketOutcome, input: RulesetTraceInput, ruleset: Ruleset): string | undefined {
  const kernel = kernelLines(seen)
  const paths = walkEveryPath(input).filter((path) => path.path.share > 0 && agreesWithPacket(path, seen))
  const candidates = paths.map((path) => ({ path, lines: pathLines(path, ruleset) }))
  const same = candidates.filter(({ lines }) => lines.join('\n') === kernel.join('\n'))
  if (same.some(({ path }) => fateDifference(seen, path) === undefined)) return undefined
  const [first = candidates[0]] = same
  const ours = first === undefined ? ['no path'] : [...first.lines, fateOfPath(first.path)]
  return [JSON.stringify(seen.packet), 'the kernel:', ...kernel, fateOfKernel(seen), 'Portolan:', ...ours].join('\n')
}

function kernelLines({ walks }: PacketOutcome): readonly string[] {
  return walks.flatMap((walk) =>
    walk.steps.flatMap((step) => {
      const place = `${step.family} ${step.table} ${step.chain}`
      const verdict = 'chain' in step.verdict ? `${step.verdict.kind} ${step.verdict.chain}` : step.verdict.kind
      if (step.kind === 'rule') return [`${place}[${step.index}] ${verdict}`]
      return step.kind === 'policy' ? [`${place} policy ${verdict}`] : []
    }),
  )
}

function pathLines({ path }: Outcome, ruleset: Ruleset): readonly string[] {
  const hops: HopEvent[] = []
  for (let entry = path.log; entry !== undefined; entry = entry.earlier) hops.unshift(entry.hop)
  return hops.flatMap((hop) => {
    const { table = '', chain = '', rule } = hop
    if (hop.kind === 'policy') return [`${table} ${chain} policy ${hop.did.startsWith('accepted') ? 'accept' : 'drop'}`]
    if (rule === undefined || isIptablesRule(rule)) return []
    const index = ruleset.tables.get(table)?.chains.get(chain)?.rules.indexOf(rule) ?? -1
    return [`${table} ${chain}[${index}] ${verdictOf(hop.did)}`]
  })
}

function verdictOf(did: string): string {
  const led = /^(jumped|went) to (\S+)$/.exec(did)
  if (led) return `${led[1] === 'jumped' ? 'jump' : 'goto'} ${led[2]}`
  if (did === 'dropped' || did === 'rejected') return 'drop'
  if (did === 'returned to the calling chain') return 'return'
  return /^(accepted|sent to|redirected|source replaced)/.test(did) ? 'accept' : 'continue'
}
