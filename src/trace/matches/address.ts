/** addrtype and iprange. */
import { compareIp, type Ip, parseIp, printIp } from '#base/ip'
import type { Option } from '#compile/iptables/rule'
import { askOnPath, sourceIsLocal } from '../ask-source'
import { known, negateIf, type Test, undecidable } from '../question'
import type { Decide, View } from '../view'
import { isBroadcast, isLocal, isMulticast } from '../world'

export function compileAddrtype(options: readonly Option[]): Decide {
  const tests = options
    .filter((option) => option.flag === '--src-type' || option.flag === '--dst-type')
    .map((option) => {
      const types = (option.values[0] ?? '').split(',')
      return (view: View): Test => negateIf(option.not, typeTest(view, option.flag, types))
    })
  return (view) => tests.map((test) => test(view))
}

/** LOCAL, MULTICAST and BROADCAST are told apart; of the rest, all are taken for UNICAST. */
function typeTest(view: View, flag: string, types: readonly string[]): Test {
  const address = flag === '--src-type' ? view.fields.source : view.fields.destination
  const rare = types.find((type) => !['LOCAL', 'UNICAST', 'MULTICAST', 'BROADCAST'].includes(type))
  if (rare !== undefined && types.length === 1) return undecidable(`-m addrtype ${flag} ${rare}`)
  if (address !== undefined && isMulticast(address)) return known(types.includes('MULTICAST'))
  if (address !== undefined && isBroadcast(address)) return known(types.includes('BROADCAST'))
  const local = flag === '--src-type' ? sourceIsLocal(view) : destinationIsLocal(view)
  if (types.includes('LOCAL') && types.includes('UNICAST')) return known(true)
  if (types.includes('LOCAL')) return local
  return types.includes('UNICAST') ? negateIf(true, local) : known(false)
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
  const address = flag === '--src-range' ? view.fields.source : view.fields.destination
  if (address !== undefined) return known(compareIp(address, from) >= 0 && compareIp(address, to) <= 0)
  const text = `${printIp(from)}-${printIp(to)}`
  return askOnPath(view.path, {
    key: `source-range:${text}`,
    subject: { kind: 'packet' },
    yes: `the source is in ${text}`,
    no: `the source is not in ${text}`,
    usual: false,
  })
}
