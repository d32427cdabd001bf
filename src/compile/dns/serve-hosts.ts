/** The hosts plugin: names and addresses from lines in the Corefile and from a file (plugin/hosts, CoreDNS 1.14). */
import { canonicalIp } from '#base/ip'
import type { Directive } from './corefile'
import { addressOfReverse, foldName, fqdn, labelsOf, matchZone, zonesOfOrigin } from './domain-name'
import { type Fallthrough, fallsThrough, parseFallthrough } from './fallthrough'
import type { Plugin } from './plugin'
import type { Notes } from './plugin-notes'
import { type DnsRecord, emptyReply, type Question, type Reply } from './record'

export type HostsTable = {
  readonly zones: readonly string[]
  readonly ttl: number
  readonly fallthrough: Fallthrough
  readonly passesOtherTypes: boolean
  readonly byName: ReadonlyMap<string, readonly string[]>
  readonly byAddress: ReadonlyMap<string, readonly string[]>
}

/** The text of a file that CoreDNS reads; undefined when the input does not hold it. */
export type ReadFile = (path: string) => string | undefined

const options = new Set(['fallthrough', 'ttl', 'no_reverse', 'reload', 'fallthrough_unsupported'])

export function readHosts(
  directive: Directive,
  zones: readonly string[],
  source: { readonly readFile: ReadFile; readonly notes: Notes },
): HostsTable {
  const [path = '/etc/hosts', ...own] = directive.args
  const find = (name: string): Directive | undefined => directive.block.find((option) => option.name === name)
  const inline = directive.block.filter(({ name }) => !options.has(name)).map(({ name, args }) => [name, ...args])
  const text = source.readFile(path)
  // The file of CoreDNS's own container is of no interest, and inline lines usually stand alone.
  if (text === undefined && path !== '/etc/hosts' && directive.args.length > 0) {
    source.notes.note('dns.file-unknown', directive, {
      message: `hosts reads ${path}, which the input does not hold; it is taken to be empty`,
    })
  }
  const fromFile = (text ?? '').split('\n').map((line) => line.replace(/#.*/, '').trim().split(/\s+/))
  const ttl = find('ttl')?.args[0] ?? ''
  const tables = tablesOf([...fromFile, ...inline], find('no_reverse') === undefined)
  const fall = find('fallthrough')
  return {
    ...tables,
    zones: own.length === 0 ? zones : own.flatMap(zonesOfOrigin),
    ttl: /^\d{1,9}$/.test(ttl) ? Number(ttl) : 3600,
    fallthrough: fall === undefined ? [] : parseFallthrough(fall.args),
    passesOtherTypes: find('fallthrough_unsupported') !== undefined,
  }
}

function tablesOf(
  lines: readonly (readonly string[])[],
  hasReverse: boolean,
): Pick<HostsTable, 'byName' | 'byAddress'> {
  const byName = new Map<string, string[]>()
  const byAddress = new Map<string, string[]>()
  for (const [first = '', ...names] of lines) {
    const address = canonicalIp(first.split('%')[0] ?? '')
    if (address === undefined) continue
    for (const name of names.map(foldName)) {
      byName.set(name, [...(byName.get(name) ?? []), address])
      if (hasReverse && !name.startsWith('*.')) byAddress.set(address, [...(byAddress.get(address) ?? []), name])
    }
  }
  return { byName, byAddress }
}

export function serveHosts(table: HostsTable): Plugin {
  return {
    name: 'hosts',
    serve: (question, next) => {
      const folded = foldName(question.name)
      const isInZone = matchZone(folded, table.zones) !== undefined
      if (question.type === 'PTR') return answerPointer(question, table) ?? next(question)
      if (!isInZone) return next(question)
      const addresses = addressesOf(folded, table)
      const passes = fallsThrough(table.fallthrough, folded)
      if (addresses === undefined) {
        if (passes) return next(question)
        return emptyReply(
          'SERVFAIL',
          'hosts',
          `hosts has no ${question.name}, no zone to say so from, and no fallthrough`,
        )
      }
      const isAddressType = question.type === 'A' || question.type === 'AAAA'
      if (!isAddressType && table.passesOtherTypes && passes) return next(question)
      return answerAddresses(question, addresses, table.ttl)
    },
  }
}

/** A line for `*.zone` stands for one label before the zone, unless that name has a line of its own. */
function addressesOf(folded: string, { byName }: HostsTable): readonly string[] | undefined {
  return byName.get(folded) ?? byName.get(fqdn(['*', ...labelsOf(folded).slice(1)].join('.')))
}

function answerAddresses({ name, type }: Question, addresses: readonly string[], ttl: number): Reply {
  const answers = addresses.flatMap((address): DnsRecord[] => {
    const kind = address.includes(':') ? 'AAAA' : 'A'
    return kind === type ? [{ type: kind, name, ttl, address }] : []
  })
  const because =
    answers.length === 0
      ? `the Corefile’s hosts have ${name}, but no ${type} of it`
      : `the Corefile’s hosts have ${name}`
  return { ...emptyReply('NOERROR', 'hosts', because), answers, isAuthoritative: true }
}

function answerPointer({ name }: Question, { byAddress, ttl }: HostsTable): Reply | undefined {
  const address = addressOfReverse(foldName(name))
  const names = address === undefined ? undefined : byAddress.get(address)
  if (names === undefined) return undefined
  const answers = names.map((target): DnsRecord => ({ type: 'PTR', name, ttl, target }))
  return { ...emptyReply('NOERROR', 'hosts', `the Corefile’s hosts have ${address}`), answers, isAuthoritative: true }
}
