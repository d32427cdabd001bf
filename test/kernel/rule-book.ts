/** What the rules of a node are called in a trace: the kernel's handle of each, its text as saved and its place in its chain. */
import type { KernelNode } from './kernel-node'
import { inside } from './namespace'
import { ipv4Rules, ipv6Rules, saveRules } from './rules'
import { mustRun } from './run-command'

/** `index` counts from 0 within the chain. */
type BookedRule = { readonly text: string; readonly index: number }

type RuleAddress = {
  readonly family: string
  readonly table: string
  readonly chain: string
  readonly handle: number
}

export type RuleBook = { readonly find: (address: RuleAddress) => BookedRule | undefined }

type ListedRule = { readonly handle: number; readonly text: string }

/**
 * `iptables-nft-save` prints a chain's rules in the order of `nft list`, so that the nth text is the nth handle's. Rules
 * that iptables did not write keep nft's text.
 */
export function readRuleBook(node: KernelNode): RuleBook {
  const listed = parseListing(mustRun(inside(node.namespace, ['nft', '-s', '-a', 'list', 'ruleset'])))
  const families = new Set([...listed.keys()].map((key) => key.split(' ')[0]))
  const saved = new Map([
    ...(families.has('ip') ? parseSave('ip', saveRules(node, ipv4Rules)) : []),
    ...(families.has('ip6') ? parseSave('ip6', saveRules(node, ipv6Rules)) : []),
  ])
  const book = new Map<string, BookedRule>()
  for (const [chain, rules] of listed) {
    const texts = saved.get(chain)
    const agrees = texts?.length === rules.length
    rules.forEach(({ handle, text }, index) => {
      book.set(`${chain} ${handle}`, { text: (agrees ? texts[index] : undefined) ?? text, index })
    })
  }
  return { find: ({ family, table, chain, handle }) => book.get(`${family} ${table} ${chain} ${handle}`) }
}

function parseListing(listing: string): Map<string, ListedRule[]> {
  const chains = new Map<string, ListedRule[]>()
  let table = ''
  let chain: string | undefined
  let begun = ''
  for (const line of listing.split('\n')) {
    table = /^table (\S+ \S+) \{/.exec(line)?.[1] ?? table
    const opened = /^\tchain (\S+) \{/.exec(line)?.[1]
    if (opened !== undefined) {
      chain = `${table} ${opened}`
      chains.set(chain, [])
    } else if (line.startsWith('\t}')) chain = undefined
    else if (chain !== undefined && !isHeader(line)) {
      begun = `${begun} ${line.trim()}`.trim()
      const whole = /^(.*?) ?# handle (\d+)$/.exec(begun)
      if (whole === null) continue
      chains.get(chain)?.push({ text: whole[1] ?? '', handle: Number(whole[2]) })
      begun = ''
    }
  }
  return chains
}

/** A base chain says its hook and its policy, and any chain may carry a comment, before the first rule. */
function isHeader(line: string): boolean {
  return /^\t\t(type \S+ hook .*;|comment ".*")$/.test(line)
}

function parseSave(family: string, save: string): Map<string, string[]> {
  const chains = new Map<string, string[]>()
  let table = ''
  for (const line of save.split('\n')) {
    if (line.startsWith('*')) table = line.slice(1)
    const chain = /^:(\S+)/.exec(line)?.[1]
    if (chain !== undefined) chains.set(`${family} ${table} ${chain}`, [])
    const rule = /^-A (\S+)/.exec(line)?.[1]
    if (rule !== undefined) chains.get(`${family} ${table} ${rule}`)?.push(line)
  }
  return chains
}
