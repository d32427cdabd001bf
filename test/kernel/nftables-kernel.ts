/** A table in a real kernel: loaded as a script, read back as text and as JSON. */

import { printJson } from '#compile/nftables/print-json'
import { printList } from '#compile/nftables/print-list'
import { printScript } from '#compile/nftables/print-script'
import type { Ruleset } from '#compile/nftables/ruleset'
import { inside } from './namespace'
import { type CommandOutcome, mustRun, runCommand } from './run-command'

export type Listing = { readonly text: string; readonly json: string }

export function loadScript(namespace: string, script: string): CommandOutcome {
  return runCommand(inside(namespace, ['nft', '-f', '-']), script)
}

export function listRuleset(namespace: string): Listing {
  return {
    text: mustRun(inside(namespace, ['nft', 'list', 'ruleset'])),
    json: withoutHandles(mustRun(inside(namespace, ['nft', '-j', 'list', 'ruleset']))),
  }
}

/** The kernel numbers what it is given; nobody can know the numbers before. */
function withoutHandles(json: string): string {
  return json.replaceAll(/"handle": \d+, |, "handle": \d+/g, '')
}

export function computedListing(ruleset: Ruleset): Listing {
  return { text: printList(ruleset), json: printJson(ruleset) }
}

/** Loads it into an empty namespace, and says what the kernel refuses. */
export function loadRuleset(namespace: string, ruleset: Ruleset): CommandOutcome {
  mustRun(inside(namespace, ['nft', 'flush', 'ruleset']))
  return loadScript(namespace, printScript(ruleset))
}

/** One JSON object a line, so that a difference shows where it is. */
export function linesOf(json: string): readonly string[] {
  return json.split(
    /, (?=\{"(?:table|set|map|chain|rule|counter|limit|quota|ct \w+|synproxy|flowtable|element)": \{"family")/,
  )
}
