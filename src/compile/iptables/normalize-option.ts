/** Options of matches and targets as iptables-save writes them back (iptables 1.8.9), whatever way they were given. */
import type { Family } from '#base/ip'
import { saveProbability } from './probability'
import type { Option } from './rule'
import { option } from './rule-parts'

type Normalizer = (options: readonly Option[], family: Family) => readonly Option[]

export function normalizeMatch(name: string, options: readonly Option[], family: Family): readonly Option[] {
  return matches.get(name)?.(options, family) ?? options
}

export function normalizeTarget(name: string, options: readonly Option[], family: Family): readonly Option[] {
  return targets.get(name)?.(options, family) ?? options
}

const allOnes = 0xffffffff

/** `VALUE[/MASK]` as two numbers; the mask is all ones when it is left out. */
function parseMark(text: string): { readonly value: number; readonly mask: number } | undefined {
  const match = /^(0[xX][0-9a-fA-F]+|\d+)(?:\/(0[xX][0-9a-fA-F]+|\d+))?$/.exec(text)
  if (match?.[1] === undefined) return undefined
  const mask = match[2] === undefined ? allOnes : toNumber(match[2])
  return { value: toNumber(match[1]), mask }
}

/** strtoul takes a leading zero for octal. */
function toNumber(text: string): number {
  return /^0\d+$/.test(text) ? Number.parseInt(text, 8) : Number(text)
}

function hex(value: number): string {
  return `0x${(value >>> 0).toString(16)}`
}

/** Rewrites each option that has a rule of its own; the others stay. */
function eachOption(rewrite: (given: Option) => Option | undefined): Normalizer {
  return (options) => options.map((given) => rewrite(given) ?? given)
}

/** `--mark 0x00004000/0x00004000` is saved without leading zeros, and without a mask of all ones. */
const markMatch = eachOption(({ flag, not, values }) => {
  const mark = flag === '--mark' ? parseMark(values[0] ?? '') : undefined
  if (mark === undefined) return undefined
  return { flag, not, values: [mark.mask === allOnes ? hex(mark.value) : `${hex(mark.value)}/${hex(mark.mask)}`] }
})

/** The five ways to set a mark are one in the kernel: clear the bits of the mask, then flip those of the value. */
const markTarget = eachOption(({ flag, values }) => {
  const mark = parseMark(values[0] ?? '')
  if (mark === undefined) return undefined
  const { value, mask } = mark
  const set = (xor: number, and: number): Option => option('--set-xmark', `${hex(xor)}/${hex(and)}`)
  switch (flag) {
    case '--set-xmark':
      return set(value, mask)
    case '--set-mark':
      return set(value, (value | mask) >>> 0)
    case '--or-mark':
      return set(value, value)
    case '--xor-mark':
      return set(value, 0)
    case '--and-mark':
      return set(0, ~value)
    default:
      return undefined
  }
})

const stateOrder: Readonly<Record<string, readonly string[]>> = {
  '--ctstate': ['INVALID', 'NEW', 'RELATED', 'ESTABLISHED', 'UNTRACKED', 'SNAT', 'DNAT'],
  '--state': ['INVALID', 'NEW', 'RELATED', 'ESTABLISHED', 'UNTRACKED'],
}

const states = eachOption(({ flag, not, values }) => {
  const order = stateOrder[flag]
  if (order === undefined) return undefined
  const asked = (values[0] ?? '').toUpperCase().split(',')
  const known = order.filter((state) => asked.includes(state))
  return known.length === new Set(asked).size ? { flag, not, values: [known.join(',')] } : undefined
})

const recentOrder = ['--set', '--rcheck', '--update', '--remove', '--seconds', '--reap', '--hitcount', '--rttl']

/** The list's name, the mask and the side come last, and are there even when they were not given. */
const recent: Normalizer = (options, family) => {
  const given = (flag: string): Option | undefined => options.find((candidate) => candidate.flag === flag)
  const everyBit = family === 'ipv4' ? '255.255.255.255' : Array<string>(8).fill('ffff').join(':')
  const known = recentOrder.flatMap((flag) => given(flag) ?? [])
  const isWhole = options.every(({ flag }) => recentOrder.includes(flag) || recentTail.has(flag))
  if (!isWhole) return options
  return [
    ...known,
    given('--name') ?? option('--name', 'DEFAULT'),
    given('--mask') ?? option('--mask', everyBit),
    given('--rdest') ?? option('--rsource'),
  ]
}

const recentTail: ReadonlySet<string> = new Set(['--name', '--mask', '--rsource', '--rdest'])

const statistic = eachOption(({ flag, not, values }) =>
  flag === '--probability' ? { flag, not, values: [saveProbability(values[0] ?? '')] } : undefined,
)

const rejectReasons: Readonly<Record<Family, string>> = {
  ipv4: 'icmp-port-unreachable',
  ipv6: 'icmp6-port-unreachable',
}

const reject: Normalizer = (options, family) =>
  options.length === 0 ? [option('--reject-with', rejectReasons[family])] : options

/** `5/minute` is saved `5/min`; the burst is saved unless it is the default of 5. */
const limit: Normalizer = (options) =>
  options.flatMap((given) => {
    if (given.flag === '--limit-burst' && given.values[0] === '5') return []
    if (given.flag !== '--limit') return [given]
    const [rate = '', unit = 'sec'] = (given.values[0] ?? '').split('/')
    const short = ['sec', 'min', 'hour', 'day'].find((name) => name.startsWith(unit[0] ?? '') && unit !== '')
    return [{ ...given, values: [`${rate}/${short ?? unit}`] }]
  })

const ports = eachOption(({ flag, not, values }) => {
  if (flag !== '--dport' && flag !== '--sport') return undefined
  const [from, to] = (values[0] ?? '').split(':')
  return from === to ? { flag, not, values: [from ?? ''] } : undefined
})

const matches: ReadonlyMap<string, Normalizer> = new Map([
  ['mark', markMatch],
  ['connmark', markMatch],
  ['conntrack', states],
  ['state', states],
  ['recent', recent],
  ['statistic', statistic],
  ['limit', limit],
  ['tcp', ports],
  ['udp', ports],
  ['sctp', ports],
])

const targets: ReadonlyMap<string, Normalizer> = new Map([
  ['MARK', markTarget],
  ['REJECT', reject],
])
