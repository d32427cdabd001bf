/** icmp and icmp6: type and code. */
import type { Option } from '#compile/iptables/rule'
import { known, negateIf, type Test, undecidable } from '../question'
import type { Decide, View } from '../view'

/** Names that `iptables-save` never prints but scripts write, as type or type and code. */
const names: Readonly<Record<string, { readonly icmp?: string; readonly icmp6?: string }>> = {
  any: { icmp: '255' },
  'echo-reply': { icmp: '0', icmp6: '129' },
  pong: { icmp: '0' },
  'echo-request': { icmp: '8', icmp6: '128' },
  ping: { icmp: '8', icmp6: '128' },
  'destination-unreachable': { icmp: '3', icmp6: '1' },
  'source-quench': { icmp: '4' },
  redirect: { icmp: '5', icmp6: '137' },
  'time-exceeded': { icmp: '11', icmp6: '3' },
  'parameter-problem': { icmp: '12', icmp6: '4' },
  'fragmentation-needed': { icmp: '3/4' },
  'packet-too-big': { icmp6: '2' },
  'router-solicitation': { icmp: '10', icmp6: '133' },
  'router-advertisement': { icmp: '9', icmp6: '134' },
  'neighbour-solicitation': { icmp6: '135' },
  'neighbor-solicitation': { icmp6: '135' },
  'neighbour-advertisement': { icmp6: '136' },
  'neighbor-advertisement': { icmp6: '136' },
}

export function compileIcmp(name: 'icmp' | 'icmp6', options: readonly Option[]): Decide {
  const protocol = name === 'icmp' ? 'icmp' : 'icmpv6'
  const tests = options.map(
    (option) =>
      (view: View): Test =>
        negateIf(option.not, typeTest(view, name, option)),
  )
  return (view) => {
    if (view.fields.protocol === 'all') return [undecidable(`-m ${name}`)]
    return view.fields.protocol === protocol ? tests.map((test) => test(view)) : [known(false)]
  }
}

function typeTest(view: View, name: 'icmp' | 'icmp6', option: Option): Test {
  const written = option.values[0] ?? ''
  const text = names[written]?.[name] ?? written
  const match = /^(\d+)(?:\/(\d+)(?:[:-](\d+))?)?$/.exec(text)
  if (match === null) return undecidable(`-m ${name} ${option.flag} ${written}`)
  const { icmp } = view.fields
  if (name === 'icmp' && match[1] === '255') return known(true)
  if (icmp === undefined) return undecidable(`the ICMP type (${written})`)
  if (icmp.type !== Number(match[1])) return known(false)
  if (match[2] === undefined) return known(true)
  return known(icmp.code >= Number(match[2]) && icmp.code <= Number(match[3] ?? match[2]))
}
