/** addrtype and iprange. */
import { compareIp, type Ip, parseIp, printIp } from '#base/ip'
import type { Option } from '#compile/iptables/rule'
import { askOnPath, destinationFits, sourceIsLocal } from '../ask-source'
import { known, negateIf, type Test, undecidable } from '../question'
import type { Decide, View } from '../view'
import { isBroadcast, isLocal, isMulticast } from '../world'

export function compileAddrtype(options: readonly Option[]): Decide {
  const isLimited = options.some((option) => option.flag.startsWith('--limit-iface'))
  const tests = options
    .filter((option) => option.flag === '--src-type' || option.flag === '--dst-type')
    .map((option) => {
      const types = (option.values[0] ?? '').split(',')
      return (view: View): Test => negateIf(option.not, typeTest(view, { flag: option.flag, types, isLimited }))
    })
  return (view) => tests.map((test) => test(view))
}

type Asked = { readonly flag: string; readonly types: readonly string[]; readonly isLimited: boolean }

const decided = ['LOCAL', 'UNICAST', 'MULTICAST', 'BROADCAST']

/** xt_addrtype.c: an IPv4 address has one type, and any of those asked for will do. */
function typeTest(view: View, asked: Asked): Test {
  const { flag, types } = asked
  if (view.fields.family === 'ipv6') return ipv6TypeTest(view, asked)
  const address = addressOf(view, flag)
  if (types.length === 1 && !decided.includes(types[0] ?? '')) return undecidable(`-m addrtype ${flag} ${types[0]}`)
  if (address !== undefined && isMulticast(address)) return known(types.includes('MULTICAST'))
  if (address !== undefined && isBroadcast(address)) return known(types.includes('BROADCAST'))
  if (types.includes('LOCAL') && types.includes('UNICAST')) return known(true)
  if (types.includes('LOCAL')) return localTest(view, asked)
  return types.includes('UNICAST') ? negateIf(true, localTest(view, asked)) : known(false)
}

/** xt_addrtype.c: an IPv6 address must be all that is asked for, and the node's own is unicast too. */
function ipv6TypeTest(view: View, asked: Asked): Test {
  const { flag, types } = asked
  const address = addressOf(view, flag)
  const routed = types.filter((type) => !['UNICAST', 'MULTICAST'].includes(type))
  if (routed.some((type) => type !== 'LOCAL')) return undecidable(`-m addrtype ${flag} ${types.join()}`)
  const isMany = address !== undefined && isMulticast(address)
  if (types.includes(isMany ? 'UNICAST' : 'MULTICAST')) return known(false)
  return routed.length === 0 ? known(true) : localTest(view, asked)
}

function addressOf({ fields }: View, flag: string): Ip | undefined {
  return flag === '--src-type' ? fields.source : fields.destination
}

/** With `--limit-iface-in` or `-out` the address must be that interface's own. */
function localTest(view: View, { flag, isLimited }: Asked): Test {
  const local = flag === '--src-type' ? sourceIsLocal(view) : destinationIsLocal(view)
  if (!isLimited || (local.kind === 'known' && !local.holds)) return local
  const side = flag === '--src-type' ? 'source' : 'destination'
  const address = addressOf(view, flag)
  return askOnPath(view.path, {
    key: `${side}-on-interface:${address === undefined ? '' : printIp(address)}`,
    subject: { kind: 'fact' },
    yes: `the ${side} is an address of the interface itself`,
    no: `the ${side} is not an address of the interface itself`,
    usual: true,
  })
}

/** An address that a rule put there is not the node's own unless the node's addresses say so. */
export function destinationIsLocal(view: View): Test {
  const { fields, world } = view
  if (fields.isRedirected) return known(true)
  const local = isLocal(world, fields.destination)
  if (local !== undefined) return known(local)
  if (fields.isDnat) return known(false)
  const text = printIp(fields.destination)
  return askOnPath(view.path, {
    key: `destination-local:${text}`,
    subject: { kind: 'fact' },
    yes: `${text} is an address of this node`,
    no: `${text} is not an address of this node`,
    usual: false,
  })
}

export function compileIprange(options: readonly Option[]): Decide {
  const tests = options.map((option) => {
    const [from, to] = (option.values[0] ?? '').split('-').map((text) => parseIp(text))
    return (view: View): Test => {
      if (from === undefined || to === undefined) return undecidable(`-m iprange ${option.flag} ${option.values[0]}`)
      return negateIf(option.not, rangeTest(view, { flag: option.flag, from, to }))
    }
  })
  return (view) => tests.map((test) => test(view))
}

function rangeTest(view: View, range: { readonly flag: string; readonly from: Ip; readonly to: Ip }): Test {
  const { flag, from, to } = range
  const text = `${printIp(from)}-${printIp(to)}`
  const isInside = (ip: Ip): boolean => compareIp(ip, from) >= 0 && compareIp(ip, to) <= 0
  if (flag === '--dst-range') return destinationFits(view, text, isInside)
  if (view.fields.source !== undefined) return known(isInside(view.fields.source))
  return askOnPath(view.path, {
    key: `source-range:${text}`,
    subject: { kind: 'packet' },
    yes: `the source is in ${text}`,
    no: `the source is not in ${text}`,
    usual: false,
  })
}
