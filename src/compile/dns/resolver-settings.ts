/** What glibc and musl read out of a resolv.conf: each has limits and slips of its own. */
import { parseIp } from '#base/ip'

export type Libc = 'glibc' | 'musl'

export type ResolverSettings = {
  readonly libc: Libc
  readonly nameservers: readonly string[]
  readonly search: readonly string[]
  readonly ndots: number
  readonly attempts: number
  readonly timeoutSeconds: number
  /** glibc 2.36's option no-aaaa: only addresses of IPv4 are asked for. */
  readonly isWithoutAaaa: boolean
  /** musl left out a line of 255 or more characters. */
  readonly isSearchIgnored: boolean
}

type Draft = { -readonly [Key in keyof ResolverSettings]: ResolverSettings[Key] }

export function readResolverSettings(text: string, libc: Libc): ResolverSettings {
  const draft: Draft = {
    libc,
    nameservers: [],
    search: [],
    ndots: 1,
    attempts: 2,
    timeoutSeconds: 5,
    isWithoutAaaa: false,
    isSearchIgnored: false,
  }
  const lines = text.split('\n')
  for (const line of lines) (libc === 'glibc' ? readGlibcLine : readMuslLine)(line, draft)
  if (draft.nameservers.length === 0) draft.nameservers = ['127.0.0.1']
  return draft
}

const mostNameservers = 3

/** glibc 2.36, resolv/res_init.c: the keyword stands at the start, the last search or domain line counts, options add up. */
function readGlibcLine(line: string, draft: Draft): void {
  const match = /^(nameserver|search|domain|options)[ \t]+(\S.*)$/.exec(line)
  if (match === null) return
  const [, keyword, rest = ''] = match
  const words = rest.split(/[ \t\r]+/).filter((word) => word !== '')
  if (keyword === 'nameserver') addNameserver(words[0], draft)
  else if (keyword === 'search') draft.search = words
  else if (keyword === 'domain') draft.search = words.slice(0, 1)
  else for (const word of words) readGlibcOption(word, draft)
}

/** Text that is no number counts as 0, as atoi has it. */
function readGlibcOption(word: string, draft: Draft): void {
  const [name, value = ''] = word.split(':')
  const number = Number(/^\d+/.exec(value)?.[0] ?? 0)
  if (name === 'ndots') draft.ndots = Math.min(number, 15)
  if (name === 'timeout') draft.timeoutSeconds = Math.max(1, Math.min(number, 30))
  if (name === 'attempts') draft.attempts = Math.min(number, 5)
  if (word === 'no-aaaa') draft.isWithoutAaaa = true
}

/** The longest line that musl's buffer of 256 holds together with its end. */
const longestMuslLine = 254

/** musl 1.2, src/network/resolvconf.c: a longer line is skipped; options are found anywhere in their line. */
function readMuslLine(line: string, draft: Draft): void {
  const match = /^(nameserver|search|domain|options)\s(.*)$/.exec(line)
  if (match === null) return
  const [, keyword, rest = ''] = match
  if (line.length > longestMuslLine) {
    if (keyword === 'search' || keyword === 'domain') draft.isSearchIgnored = true
    return
  }
  if (keyword === 'nameserver') addNameserver(rest.trim().split(/\s+/)[0], draft)
  else if (keyword === 'options') readMuslOptions(line, draft)
  else {
    draft.search = rest.split(/\s+/).filter((word) => word !== '')
    draft.isSearchIgnored = false
  }
}

function readMuslOptions(line: string, draft: Draft): void {
  const numberAfter = (word: string): number | undefined => {
    const at = line.indexOf(word)
    const digits = at < 0 ? undefined : /^\d+/.exec(line.slice(at + word.length))?.[0]
    return digits === undefined ? undefined : Number(digits)
  }
  draft.ndots = Math.min(numberAfter('ndots:') ?? draft.ndots, 15)
  draft.attempts = Math.min(numberAfter('attempts:') ?? draft.attempts, 10)
  draft.timeoutSeconds = Math.min(numberAfter('timeout:') ?? draft.timeoutSeconds, 60)
}

function addNameserver(word: string | undefined, draft: Draft): void {
  const address = word?.split('%')[0]
  if (address === undefined || parseIp(address) === undefined || draft.nameservers.length >= mostNameservers) return
  draft.nameservers = [...draft.nameservers, address]
}
