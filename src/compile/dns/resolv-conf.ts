/** A resolv.conf as data, its text, and the kubelet's reading of a node's file. */
import type { Finding, Parsed } from '#base/finding'
import { dnsFinding } from './findings'

/** Options as words: `ndots:5`, `edns0`. */
export type ResolvConf = {
  readonly nameservers: readonly string[]
  readonly searches: readonly string[]
  readonly options: readonly string[]
}

export const emptyResolvConf: ResolvConf = { nameservers: [], searches: [], options: [] }

export function printResolvConf({ nameservers, searches, options }: ResolvConf): string {
  const lines = [
    ...nameservers.map((address) => `nameserver ${address}`),
    ...(searches.length === 0 ? [] : [`search ${searches.join(' ')}`]),
    ...(options.length === 0 ? [] : [`options ${options.join(' ')}`]),
  ]
  return lines.map((line) => `${line}\n`).join('')
}

/**
 * Mirrors parseResolvConf of pkg/kubelet/network/dns (1.34): the last search line counts, options add up by name, a search
 * domain loses its closing dot.
 */
export function parseNodeResolvConf(text: string, file: string): Parsed<ResolvConf> {
  const nameservers: string[] = []
  let searches: readonly string[] = []
  let options: readonly string[] = []
  const findings: Finding[] = []
  for (const [index, line] of text.split('\n').entries()) {
    const [word = '', ...rest] = line.trim().split(/\s+/)
    if (word.startsWith('#')) continue
    if (word === 'search') searches = rest.map((domain) => (domain === '.' ? domain : domain.replace(/\.$/, '')))
    if (word === 'options') options = mergeOptions(options, rest)
    if (word === 'nameserver' && rest[0] !== undefined) nameservers.push(rest[0])
    if (word === 'nameserver' && rest[0] === undefined) {
      const message = 'a nameserver line names no address; the kubelet starts no pod with this file'
      findings.push(dnsFinding('dns.node-resolv-conf', { origin: { file, line: index + 1 }, message }))
    }
  }
  return { value: { nameservers, searches, options }, findings }
}

/** A later option of the same name takes the place of an earlier one. The kubelet's order is that of a Go map: none. */
export function mergeOptions(options: readonly string[], later: readonly string[]): readonly string[] {
  const merged = new Map<string, string>()
  for (const option of [...options, ...later]) merged.set(option.split(':')[0] ?? '', option)
  return [...merged.values()]
}
