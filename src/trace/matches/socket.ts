/** owner, cgroup, socket: matches on the local process behind a packet. */
import type { Option } from '#compile/iptables/rule'
import { askOnPath } from '../ask-source'
import { known, negateIf, type Test } from '../question'
import type { Decide, View } from '../view'

/** A forwarded packet has no socket: then a negated option alone can hold (xt_owner.c). */
export function compileOwner(options: readonly Option[]): Decide {
  const tests = options.map(
    (option) =>
      (view: View): Test =>
        ownerTest(view, option),
  )
  return (view) => tests.map((test) => test(view))
}

function ownerTest(view: View, option: Option): Test {
  if (view.fields.way === 'wire') return known(option.not)
  const what = `${option.flag.replace(/^--/, '').replace('-owner', '')} ${option.values[0] ?? ''}`.trim()
  const test = askOnPath(view.path, {
    key: `owner:${what}`,
    subject: { kind: 'packet' },
    yes: `the sending process has ${what}`,
    no: `the sending process does not have ${what}`,
    usual: false,
  })
  return negateIf(option.not, test)
}

/** A first packet off the wire has a socket only where a process listens on its very address. */
export function compileSocket(options: readonly Option[]): Decide {
  const text = options.map((option) => option.flag).join(' ')
  return (view) => [
    askOnPath(view.path, {
      key: `socket:${text}`,
      subject: { kind: 'packet' },
      yes: `a local socket${text.includes('--transparent') ? ' with IP_TRANSPARENT' : ''} takes it`,
      no: 'no local socket takes it',
      usual: false,
    }),
  ]
}
