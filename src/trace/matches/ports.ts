/** tcp, udp, sctp, dccp, udplite and multiport: ports and TCP flags. */
import { hasPort, type PortRange, parsePortRange, printPortRange } from '#base/port-range'
import type { Option } from '#compile/iptables/rule'
import { sourcePortIn } from '../ask-source'
import { known, negateIf, type Test, undecidable } from '../question'
import type { Decide, View } from '../view'

const withPorts = new Set(['tcp', 'udp', 'sctp', 'dccp', 'udplite'])

/** The match of one protocol; it holds for that protocol alone. */
export function compileProtocolPorts(name: string, options: readonly Option[]): Decide {
  const tests = options.map((option) => compilePortOption(name, option))
  return (view) => {
    if (view.fields.protocol === 'all') return [undecidable(`-m ${name}`)]
    if (view.fields.protocol !== name) return [known(false)]
    return tests.map((test) => test(view))
  }
}

function compilePortOption(name: string, option: Option): (view: View) => Test {
  const text = option.values[0] ?? ''
  if (option.flag === '--dport' || option.flag === '--sport') {
    const range = parsePortRange(text)
    if (range === undefined) return () => undecidable(`-m ${name} ${option.flag} ${text}`)
    return (view) => negateIf(option.not, portTest(view, option.flag === '--dport' ? 'destination' : 'source', [range]))
  }
  if (option.flag === '--syn') return (view) => negateIf(option.not, firstPacketOnly(view, 'it is a SYN'))
  if (option.flag === '--tcp-flags') return (view) => negateIf(option.not, tcpFlags(view, option))
  return () => undecidable(`-m ${name} ${option.flag} ${option.values.join(' ')}`)
}

/** A connection's first TCP packet has SYN alone of FIN, SYN, RST and ACK. */
function firstPacketOnly(view: View, what: string): Test {
  return view.fields.state === 'NEW' ? known(true) : undecidable(what)
}

function tcpFlags(view: View, option: Option): Test {
  const [mask = '', set = ''] = option.values
  if (view.fields.state !== 'NEW') return undecidable(`-m tcp --tcp-flags ${mask} ${set}`)
  const all = 'FIN,SYN,RST,PSH,ACK,URG'
  const asked = (mask === 'ALL' ? all : mask).split(',')
  const wanted = set === 'NONE' ? [] : (set === 'ALL' ? all : set).split(',')
  return known(asked.every((flag) => wanted.includes(flag) === (flag === 'SYN')))
}

export function compileMultiport(options: readonly Option[]): Decide {
  const tests = options.map((option) => {
    const ranges = (option.values[0] ?? '').split(',').map((text) => parsePortRange(text))
    const known = ranges.filter((range) => range !== undefined)
    return (view: View): Test => {
      if (known.length !== ranges.length) return undecidable(`-m multiport ${option.flag} ${option.values[0]}`)
      return negateIf(option.not, multiportTest(view, option.flag, known))
    }
  })
  return (view) => {
    if (view.fields.protocol === 'all') return [undecidable('-m multiport')]
    return withPorts.has(view.fields.protocol) ? tests.map((test) => test(view)) : [known(false)]
  }
}

function multiportTest(view: View, flag: string, ranges: readonly PortRange[]): Test {
  if (flag === '--dports' || flag === '--destination-ports') return portTest(view, 'destination', ranges)
  if (flag === '--sports' || flag === '--source-ports') return portTest(view, 'source', ranges)
  const destination = portTest(view, 'destination', ranges)
  return destination.kind === 'known' && destination.holds ? destination : portTest(view, 'source', ranges)
}

function portTest(view: View, side: 'source' | 'destination', ranges: readonly PortRange[]): Test {
  if (side === 'destination') {
    const port = view.fields.destinationPort
    if (port === undefined) return undecidable(`the destination port (${printRanges(ranges)})`)
    return known(ranges.some((range) => hasPort(range, port)))
  }
  const port = view.fields.sourcePort
  if (port !== undefined) return known(ranges.some((range) => hasPort(range, port)))
  const [only] = ranges
  if (ranges.length === 1 && only !== undefined) return sourcePortIn(view, only)
  const text = printRanges(ranges)
  const question = { key: `source-port:${text}`, subject: { kind: 'packet' }, usual: false } as const
  return {
    kind: 'ask',
    holdsWhen: true,
    question: { ...question, yes: `the source port is one of ${text}`, no: `the source port is none of ${text}` },
  }
}

function printRanges(ranges: readonly PortRange[]): string {
  return ranges.map((range) => printPortRange(range, '-')).join(', ')
}
