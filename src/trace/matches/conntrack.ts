/** conntrack, state: what connection tracking knows of a packet. */
import { isSameIp } from '#base/ip'
import { parsePortRange } from '#base/port-range'
import type { Option } from '#compile/iptables/rule'
import { destinationFits, sourceIn } from '../ask-source'
import { cameBack, hasConnection, stateAt } from '../connection'
import { hasAddress, type MaskedAddress, parseMaskedAddress, printMasked } from '../masked-address'
import type { Fields } from '../path'
import { protocolNumber } from '../protocols'
import { known, negateIf, type Test, undecidable } from '../question'
import type { Decide, View } from '../view'

/** Without a connection (xt_conntrack.c) the state alone counts; a rule that does not ask for it never matches. */
export function compileConntrack(options: readonly Option[]): Decide {
  const state = options.find((option) => option.flag === '--ctstate' || option.flag === '--state')
  return (view) => {
    if (hasConnection(view)) return options.map((option) => negateIf(option.not, optionTest(view, option)))
    return [state === undefined ? known(false) : negateIf(state.not, optionTest(view, state))]
  }
}

function optionTest(view: View, option: Option): Test {
  const value = option.values[0] ?? ''
  const { fields } = view
  if (option.flag === '--ctstate' || option.flag === '--state') return stateTest(view, value)
  if (option.flag === '--ctproto') return known(protocolNumber(value) === protocolNumber(fields.protocol))
  if (option.flag === '--ctstatus') return statusTest(view, value)
  // A later packet may be an answer, and of what the first one was nothing is known. An answer to a first one comes from
  // where that one goes to, and goes to where that one comes from, as translated so far.
  if (fields.state !== 'NEW') return undecidable(`-m conntrack ${option.flag} ${value}`)
  switch (option.flag) {
    case '--ctorigdst':
      return addressTest(value, (masked) => known(hasAddress(masked, fields.originalDestination)))
    case '--ctorigsrc':
      return addressTest(value, (masked) => originalSourceIn(view, masked))
    case '--ctreplsrc':
      return addressTest(value, (masked) => destinationFits(view, value, (ip) => hasAddress(masked, ip)))
    case '--ctrepldst':
      return addressTest(value, (masked) => sourceIn(view, masked))
    case '--ctorigsrcport':
      return portTest(option, fields.isSnat ? undefined : fields.sourcePort)
    case '--ctorigdstport':
      return portTest(option, fields.originalPort)
    case '--ctreplsrcport':
      return portTest(option, fields.destinationPort)
    case '--ctrepldstport':
      return portTest(option, fields.sourcePort)
    case '--ctdir':
      return known(value === 'ORIGINAL')
    default:
      return undecidable(`-m conntrack ${option.flag} ${value}`)
  }
}

function addressTest(value: string, test: (masked: MaskedAddress) => Test): Test {
  const masked = parseMaskedAddress(value)
  return masked === undefined ? undecidable(`-m conntrack address ${value}`) : test(masked)
}

function portTest({ flag, values: [value = ''] }: Option, port: number | undefined): Test {
  const range = parsePortRange(value)
  return range === undefined || port === undefined
    ? undecidable(`-m conntrack ${flag} ${value}`)
    : known(port >= range.from && port <= range.to)
}

/** DNAT and SNAT are states of their own here: the connection's addresses were translated, and to others than before. */
function stateTest(view: View, value: string): Test {
  const { fields } = view
  const wanted = value.split(',')
  if (!hasConnection(view)) return known(wanted.includes(stateAt(view)))
  if (wanted.includes(fields.state)) return known(true)
  const dnat = wanted.includes('DNAT') ? newDestinationTest(fields) : known(false)
  if (dnat.kind !== 'known' || dnat.holds) return dnat
  if (wanted.includes('SNAT') && fields.isSnat) return newSourceTest(fields)
  const mayBeNat = fields.state !== 'NEW' && (wanted.includes('DNAT') || wanted.includes('SNAT'))
  return mayBeNat ? undecidable(`the translation of an ${fields.state} connection`) : known(false)
}

/** A redirection may well be to the address that the packet was for. */
function newDestinationTest({ isDnat, redirectedTo, destination, destinationPort, ...fields }: Fields): Test {
  if (!isDnat || destinationPort !== fields.originalPort) return known(isDnat)
  const { originalDestination } = fields
  if (redirectedTo === undefined) return known(!isSameIp(destination, originalDestination))
  const mayStay = redirectedTo.length === 0 || redirectedTo.some((ip) => isSameIp(ip, originalDestination))
  return mayStay ? undecidable('--ctstate DNAT') : known(true)
}

/** A masquerade may well give a packet the address it has; a port that is changed makes it another source. */
function newSourceTest({ source, sourcePort, originalSource }: Fields): Test {
  if (source === undefined || originalSource === undefined) return undecidable('--ctstate SNAT')
  if (!isSameIp(source, originalSource)) return known(true)
  return sourcePort === undefined ? undecidable('--ctstate SNAT') : known(false)
}

function originalSourceIn(view: View, masked: MaskedAddress): Test {
  const { isSnat, originalSource } = view.fields
  if (originalSource !== undefined) return known(hasAddress(masked, originalSource))
  return isSnat ? undecidable(`--ctorigsrc ${printMasked(masked)}`) : sourceIn(view, masked)
}

/**
 * NONE is a name for no bit at all, so that it alone never matches. A first packet's connection is neither answered nor
 * assured; it is confirmed as the packet leaves, which one that comes back in on `lo` shows. An established one is both.
 */
function statusTest({ fields }: View, value: string): Test {
  const bits = value.split(',').filter((bit) => bit !== 'NONE')
  if (bits.length === 0) return known(false)
  if (fields.state !== 'NEW') {
    const isSure = fields.state === 'ESTABLISHED' && (bits.includes('SEEN_REPLY') || bits.includes('CONFIRMED'))
    return isSure ? known(true) : undecidable(`--ctstatus ${value}`)
  }
  return known(bits.includes('CONFIRMED') && cameBack(fields))
}
