/** The text of `ipset save` (and `ipset list`'s members are not read): sets by name, with their types and members. */
import type { Finding } from '#base/finding'
import { type Ip, parseIp } from '#base/ip'
import { type PortRange, parsePortRange } from '#base/port-range'
import { containsIp, type Prefix, parsePrefixOrIp } from '#base/prefix'
import { rulesetFinding } from './findings'

/** One dimension of a member: an address range, a port of a protocol, a mark, a name. */
export type SetPart =
  | { readonly kind: 'prefix'; readonly prefix: Prefix }
  | { readonly kind: 'range'; readonly from: Ip; readonly to: Ip }
  | { readonly kind: 'port'; readonly protocol: string | undefined; readonly ports: PortRange }
  | { readonly kind: 'text'; readonly text: string }

export type SetMember = { readonly parts: readonly SetPart[]; readonly isNoMatch: boolean }

export type IpSet = {
  readonly name: string
  /** `hash:ip,port`, `list:set`, … */
  readonly type: string
  /** The type's dimensions: `ip`, `net`, `port`, `mac`, `iface`, `mark`, `set`. */
  readonly dimensions: readonly string[]
  readonly family: 'ipv4' | 'ipv6' | undefined
  readonly members: readonly SetMember[]
  /** Members with one exact address first, by that address: the fast way in. */
  readonly byAddress: ReadonlyMap<string, readonly SetMember[]>
}

type Draft = {
  name: string
  type: string
  dimensions: string[]
  family: 'ipv4' | 'ipv6' | undefined
  members: SetMember[]
  byAddress: Map<string, SetMember[]>
}

const createLine = /^[ \t]*create (\S+) (?:hash|bitmap|list):/m

export function isIpsetText(text: string): boolean {
  return createLine.test(text)
}

/** The text with the lines of `ipset save` emptied, so that what is left keeps its line numbers. */
export function withoutIpset(text: string): string {
  return text.replace(/^[ \t]*(?:create \S+ (?:hash|bitmap|list):|add (\S+) ).*$/gm, (line, set: string | undefined) =>
    set !== undefined && nftObjects.has(set) ? line : '',
  )
}

/** `add rule …` is a line of an nft script. */
const nftObjects: ReadonlySet<string> = new Set(
  'table chain rule set map element counter quota limit flowtable ct synproxy secmark'.split(' '),
)

export function parseIpset(
  text: string,
  file: string,
): { readonly sets: ReadonlyMap<string, IpSet>; readonly findings: readonly Finding[] } {
  const drafts = new Map<string, Draft>()
  const findings: Finding[] = []
  let line = 0
  for (const row of text.split('\n')) {
    line++
    const words = row.trim().split(/\s+/)
    if (words[0] === 'create' && createLine.test(row)) {
      const earlier = drafts.has(words[1] ?? '')
      if (earlier) findings.push(setTwice(words[1] ?? '', file, line))
      createSet(drafts, words)
    } else if (words[0] === 'add' && nftObjects.has(words[1] ?? '') && !drafts.has(words[1] ?? '')) continue
    else if (words[0] === 'add' && words.length >= 3) {
      const set = drafts.get(words[1] ?? '')
      const member = set && parseMember(set, words[2] ?? '', words.includes('nomatch'))
      if (set !== undefined && member !== undefined) addMember(set, member)
      else
        findings.push(
          rulesetFinding('ruleset.bad-set-member', {
            message: `set member left out: \`${row.trim().slice(0, 80)}\``,
            file,
            line,
          }),
        )
    }
  }
  return { sets: drafts, findings }
}

export function setTwice(name: string, file: string, line: number): Finding {
  const message = `set ${name} is created here again; the later one is used`
  return rulesetFinding('ruleset.set-twice', { message, file, line })
}

function createSet(drafts: Map<string, Draft>, words: readonly string[]): void {
  const [, name = '', type = ''] = words
  const familyAt = words.indexOf('family')
  const family = familyAt < 0 ? undefined : words[familyAt + 1] === 'inet6' ? 'ipv6' : 'ipv4'
  const dimensions = (type.split(':')[1] ?? '').split(',')
  drafts.set(name, { name, type, dimensions, family, members: [], byAddress: new Map() })
}

function parseMember(set: Draft, text: string, isNoMatch: boolean): SetMember | undefined {
  const parts: SetPart[] = []
  const texts = text.split(',')
  for (const [index, dimension] of set.dimensions.entries()) {
    const part = parsePart(dimension, texts[index] ?? '')
    if (part === undefined) return undefined
    parts.push(part)
  }
  return { parts, isNoMatch }
}

function parsePart(dimension: string, text: string): SetPart | undefined {
  if (text === '') return undefined
  if (dimension === 'ip' || dimension === 'net') return parseAddressPart(text)
  if (dimension !== 'port') return { kind: 'text', text: text.replace(/^physdev:/, '') }
  const [protocol, ports] = text.includes(':') ? text.split(':') : [undefined, text]
  const range = parsePortRange(ports ?? '', '-')
  return range === undefined ? { kind: 'text', text } : { kind: 'port', protocol, ports: range }
}

function parseAddressPart(text: string): SetPart | undefined {
  const dash = text.indexOf('-')
  if (dash < 0) {
    const prefix = parsePrefixOrIp(text)
    return prefix === undefined ? undefined : { kind: 'prefix', prefix }
  }
  const from = parseIp(text.slice(0, dash))
  const to = parseIp(text.slice(dash + 1))
  return from === undefined || to === undefined ? undefined : { kind: 'range', from, to }
}

function addMember(set: Draft, member: SetMember): void {
  set.members.push(member)
  const first = member.parts[0]
  if (first?.kind !== 'prefix' || first.prefix.length !== (first.prefix.ip.family === 'ipv4' ? 32 : 128)) return
  const key = first.prefix.ip.words.join('.')
  const list = set.byAddress.get(key)
  if (list === undefined) set.byAddress.set(key, [member])
  else list.push(member)
}

export function partHasIp(part: SetPart, ip: Ip): boolean {
  if (part.kind === 'prefix') return containsIp(part.prefix, ip)
  if (part.kind !== 'range' || part.from.family !== ip.family) return false
  const isAtLeast = (a: Ip, b: Ip): boolean => {
    for (const [index, word] of a.words.entries()) {
      const other = b.words[index] ?? 0
      if (word !== other) return word > other
    }
    return true
  }
  return isAtLeast(ip, part.from) && isAtLeast(part.to, ip)
}
