/** Matches on parts of a packet that a trace is seldom told: length, type, physical port, return path, header fields. */
import { parsePortRange } from '#base/port-range'
import type { Option } from '#compile/iptables/rule'
import { askOnPath } from '../ask-source'
import { known, negateIf, type Test } from '../question'
import type { Decide, View } from '../view'
import { isBroadcast, isLocal, isMulticast } from '../world'

/** A SYN is 60 bytes long (52 without timestamps): the usual answer is for 60. */
export function compileLength(options: readonly Option[]): Decide {
  const option = options[0]
  const text = option?.values[0] ?? ''
  const range = parsePortRange(text)
  const usual = range !== undefined && range.from <= 60 && range.to >= 60
  return (view) => [
    negateIf(
      option?.not ?? false,
      openQuestion(view, {
        key: `length:${text}`,
        what: `its length is ${text} bytes`,
        not: `its length is not ${text} bytes`,
        usual,
      }),
    ),
  ]
}

export function compilePkttype(options: readonly Option[]): Decide {
  const option = options[0]
  const type = option?.values[0] ?? ''
  return ({ fields }) => {
    // The type is that of the frame: no translation changes it, and what a process sends has none but the plain one.
    const first = fields.way === 'wire' ? fields.originalDestination : undefined
    const isMany = first !== undefined && isMulticast(first)
    const is = first !== undefined && isBroadcast(first) ? 'broadcast' : isMany ? 'multicast' : 'unicast'
    return [negateIf(option?.not ?? false, known(type === is || (type === 'host' && is === 'unicast')))]
  }
}

/** Portolan traces routed packets: none is bridged, and only the port it came in by may be a bridge's. */
export function compilePhysdev(options: readonly Option[]): Decide {
  const tests = options.map(
    (option) =>
      (view: View): Test =>
        negateIf(option.not, physdevTest(view, option)),
  )
  return (view) => tests.map((test) => test(view))
}

function physdevTest(view: View, option: Option): Test {
  const name = option.values[0] ?? ''
  const isIn = option.flag === '--physdev-in' || option.flag === '--physdev-is-in'
  if (!isIn || view.fields.way === 'process') return known(false)
  const what = name === '' ? 'it comes in through a port of a bridge' : `it comes in through bridge port ${name}`
  return openQuestion(view, {
    key: `physdev:${name}`,
    what,
    not: what.replace('it comes', 'it does not come'),
    usual: false,
  })
}

/**
 * The usual packet passes: its source lies behind the interface it came in by. All that comes by `lo` does, and nothing else
 * from an address of the node itself unless that is accepted (ipt_rpfilter.c).
 */
export function compileRpfilter(options: readonly Option[]): Decide {
  const has = (flag: string): boolean => options.some((option) => option.flag === flag)
  const question = {
    key: has('--loose') ? 'rpfilter:loose' : 'rpfilter',
    what: 'the way back to the source is the interface it came in by',
    not: 'the way back to the source is not the interface it came in by',
    usual: true,
  }
  const test = (view: View): Test => {
    const { inInterface, source } = view.fields
    if (inInterface === 'lo') return known(true)
    const isOwn = source !== undefined && isLocal(view.world, source) === true
    return isOwn && !has('--accept-local') ? known(false) : openQuestion(view, question)
  }
  return (view) => [negateIf(has('--invert'), test(view))]
}

/** IPsec: the usual packet is in no tunnel. */
export function compileIpsecPolicy(options: readonly Option[]): Decide {
  const policy = options.find((option) => option.flag === '--pol')
  const isNone = policy?.values[0] === 'none'
  return (view) => [
    negateIf(
      isNone !== (policy?.not ?? false),
      openQuestion(view, {
        key: 'ipsec',
        what: 'it belongs to an IPsec policy',
        not: 'it belongs to no IPsec policy',
        usual: false,
      }),
    ),
  ]
}

/** Any other match on a field that the packet has and the trace was not told: both answers are possible. */
export function compileOpen(name: string, options: readonly Option[], usual: boolean): Decide {
  const isNot = options[0]?.not ?? false
  const text = options.map((option) => [option.flag.replace(/^--/, ''), ...option.values].join(' ')).join(', ')
  return (view) => {
    const when = isOneHopOlder(name, view) ? ' after forwarding' : ''
    const what = `${name} (${text})`
    const question = { key: `open:${name}:${text}${when}`, what: `${what} holds${when}`, usual }
    return [negateIf(isNot, openQuestion(view, { ...question, not: `${what} does not hold${when}` }))]
  }
}

/** The kernel counts the time to live down before FORWARD (ip_forward.c), so that what was asked before is asked anew. */
function isOneHopOlder(name: string, { fields, hook }: View): boolean {
  return (name === 'ttl' || name === 'hl') && fields.way === 'wire' && (hook === 'FORWARD' || hook === 'POSTROUTING')
}

type OpenQuestion = { readonly key: string; readonly what: string; readonly not: string; readonly usual: boolean }

function openQuestion(view: View, { key, what, not, usual }: OpenQuestion): Test {
  return askOnPath(view.path, { key, subject: { kind: 'packet' }, yes: what, no: not, usual })
}
