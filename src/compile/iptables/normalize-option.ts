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

/** The short names of reject reasons that iptables knows beside those it saves. */
const shortReasons: Readonly<Record<Family, ReadonlyMap<string, string>>> = {
  ipv4: new Map([
    ['net-unreach', 'icmp-net-unreachable'],
    ['host-unreach', 'icmp-host-unreachable'],
    ['proto-unreach', 'icmp-proto-unreachable'],
    ['port-unreach', 'icmp-port-unreachable'],
    ['net-prohib', 'icmp-net-prohibited'],
    ['host-prohib', 'icmp-host-prohibited'],
    ['admin-prohib', 'icmp-admin-prohibited'],
    ['tcp-rst', 'tcp-reset'],
  ]),
  ipv6: new Map([
    ['no-route', 'icmp6-no-route'],
    ['adm-prohibited', 'icmp6-adm-prohibited'],
    ['addr-unreach', 'icmp6-addr-unreachable'],
    ['port-unreach', 'icmp6-port-unreachable'],
  ]),
}

const reject: Normalizer = (options, family) => {
  if (options.length === 0) return [option('--reject-with', rejectReasons[family])]
  return options.map((given) => ({
    ...given,
    values: given.values.map((value) => shortReasons[family].get(value) ?? value),
  }))
}

/** Seconds of each unit, longest first; iptables counts a rate in ten-thousandths of a second between packets. */
const rateUnits = [
  { name: 'day', ticks: 864_000_000 },
  { name: 'hour', ticks: 36_000_000 },
  { name: 'min', ticks: 600_000 },
  { name: 'sec', ticks: 10_000 },
] as const

/** Mirrors print_rate of libxt_limit.c (1.8.9): `120/minute` comes back as `2/sec`. */
function normalizeRate(text: string): string {
  const given = /^(\d+)(?:\/([a-z]+))?$/.exec(text)
  const unit = rateUnits.find(({ name }) => name.startsWith((given?.[2] ?? 'sec').slice(0, name.length)))
  const count = Number(given?.[1] ?? 0)
  if (given === null || unit === undefined || count === 0) return text
  const ticks = Math.floor(unit.ticks / count)
  if (ticks === 0) return text
  const next = rateUnits.findIndex((candidate, at) => at > 0 && !fitsRate(candidate.ticks, ticks))
  const chosen = rateUnits[next < 0 ? rateUnits.length - 1 : next - 1] ?? unit
  return `${Math.floor(chosen.ticks / ticks)}/${chosen.name}`
}

function fitsRate(unitTicks: number, ticks: number): boolean {
  return ticks <= unitTicks && Math.floor(unitTicks / ticks) >= unitTicks % ticks
}

/** The burst is saved unless it is the default of 5. */
const limit: Normalizer = (options) =>
  options.flatMap((given) => {
    if (given.flag === '--limit-burst' && given.values[0] === '5') return []
    return given.flag === '--limit' ? [{ ...given, values: [normalizeRate(given.values[0] ?? '')] }] : [given]
  })

const ports = eachOption(({ flag, not, values }) => {
  if (flag === '--syn') return { flag: '--tcp-flags', not, values: ['FIN,SYN,RST,ACK', 'SYN'] }
  if (flag !== '--dport' && flag !== '--sport') return undefined
  const [from = '', to] = (values[0] ?? '').split(':')
  if (to === undefined) return undefined
  return { flag, not, values: [from === to ? from : `${from === '' ? '0' : from}:${to === '' ? '65535' : to}`] }
})

const addressTypes = eachOption(({ flag, not, values }) => ({
  flag,
  not,
  values: values.map((value) => value.toUpperCase()),
}))

const connmarkMasks = eachOption(({ flag, not, values }) => {
  const mark = parseMark(values[0] ?? '')
  if (mark === undefined) return undefined
  if (flag === '--set-mark')
    return { flag: '--set-xmark', not, values: [`${hex(mark.value)}/${hex((mark.value | mark.mask) >>> 0)}`] }
  return flag === '--set-xmark' ? { flag, not, values: [`${hex(mark.value)}/${hex(mark.mask)}`] } : undefined
})

/** Saving and restoring a connection's mark is saved with both masks. */
const connmarkTarget: Normalizer = (options, family) => {
  const copies = options.some(({ flag }) => flag === '--save-mark' || flag === '--restore-mark')
  if (!copies) return connmarkMasks(options, family)
  const maskOf = (flag: string): string => {
    const given =
      options.find((candidate) => candidate.flag === flag) ?? options.find(({ flag: other }) => other === '--mask')
    return hex(parseMark(given?.values[0] ?? '0xffffffff')?.value ?? allOnes)
  }
  const rest = options.filter(({ flag }) => !flag.endsWith('mask'))
  return [...rest, option('--nfmask', maskOf('--nfmask')), option('--ctmask', maskOf('--ctmask'))]
}

const logLevels = ['emerg', 'alert', 'crit', 'error', 'warning', 'notice', 'info', 'debug']

/** A log level is saved as a number, and the default of 4 not at all. */
const log: Normalizer = (options) =>
  options.flatMap((given) => {
    if (given.flag !== '--log-level') return [given]
    const [level = ''] = given.values
    const number = logLevels.includes(level) ? String(logLevels.indexOf(level)) : level
    return number === '4' ? [] : [{ ...given, values: [number] }]
  })

/** Options that are saved in an order of their own; any other stays behind them. */
function inOrder(order: readonly string[], normalizer: Normalizer = (options) => options): Normalizer {
  const rank = ({ flag }: Option): number => (order.includes(flag) ? order.indexOf(flag) : order.length)
  return (options, family) => {
    const normalized = normalizer(options, family)
    return normalized.length < 2 ? normalized : normalized.toSorted((a, b) => rank(a) - rank(b))
  }
}

const matches: ReadonlyMap<string, Normalizer> = new Map([
  ['mark', markMatch],
  ['connmark', markMatch],
  ['conntrack', states],
  ['state', states],
  ['string', inOrder(['--string', '--hex-string'])],
  ['recent', recent],
  ['statistic', inOrder(['--mode'], statistic)],
  ['limit', limit],
  ['addrtype', inOrder(['--src-type', '--dst-type'], addressTypes)],
  ['tcp', inOrder(['--sport', '--dport'], ports)],
  ['udp', inOrder(['--sport', '--dport'], ports)],
  ['sctp', inOrder(['--sport', '--dport'], ports)],
])

const targets: ReadonlyMap<string, Normalizer> = new Map([
  ['MARK', markTarget],
  ['CONNMARK', connmarkTarget],
  ['LOG', inOrder(['--log-prefix', '--log-level'], log)],
  ['NFLOG', inOrder(['--nflog-prefix'])],
  ['REJECT', reject],
])
