/** Questions about the source address, its port and the interfaces, asked when the packet does not tell. */
import { type Ip, parseIp } from '#base/ip'
import type { PortRange } from '#base/port-range'
import { hasPort, printPortRange } from '#base/port-range'
import type { MaskedAddress } from './masked-address'
import { hasAddress, printMasked } from './masked-address'
import { addressesOf, parseNatRange } from './nat-range'
import { answerOf, coversPattern, type Path } from './path'
import { ask, known, type Question, type Test } from './question'
import type { View } from './view'
import { isLocal } from './world'

/** Answers from the path where it can: what an earlier answer settled is `known`, with the text of what it rests on. */
export function askOnPath(path: Path, question: Question): Test {
  const answer = answerOf(path, question)
  return answer === undefined ? ask(question) : { kind: 'known', holds: answer, assumed: { question, answer } }
}

export function sourceIn(view: View, masked: MaskedAddress): Test {
  const { source } = view.fields
  if (source !== undefined) return known(hasAddress(masked, source))
  const text = printMasked(masked)
  if (masked.prefix === undefined) {
    const yes = `the source matches ${text}`
    const question: Question = {
      key: `source:${text}`,
      subject: { kind: 'packet' },
      yes,
      no: `the source does not match ${text}`,
      usual: false,
    }
    return askOnPath(view.path, question)
  }
  if (masked.prefix.length === 0) return known(true)
  const agreed = agreedOn(view, (ip) => hasAddress(masked, ip))
  if (agreed !== undefined) return known(agreed)
  const isHost = !text.includes('/')
  return askOnPath(view.path, {
    key: `source:${text}`,
    subject: { kind: 'source-in', prefix: masked.prefix },
    yes: isHost ? `the source is ${text}` : `the source is inside ${text}`,
    no: isHost ? `the source is not ${text}` : `the source is outside ${text}`,
    usual: false,
  })
}

/** A redirected packet's destination is one of several when it is not known which; the others have one. */
export function destinationFits(view: View, what: string, fits: (ip: Ip) => boolean): Test {
  const { redirectedTo, destination } = view.fields
  if (redirectedTo === undefined) return known(fits(destination))
  const answers = new Set(redirectedTo.map(fits))
  const [only] = answers
  if (only !== undefined && answers.size === 1) return known(only)
  return askOnPath(view.path, {
    key: `redirected-to:${what}`,
    subject: { kind: 'fact' },
    yes: `it is redirected to an address in ${what}`,
    no: `it is redirected to no address in ${what}`,
    usual: false,
  })
}

/** The addresses of which the source is one: those of a translation, or the node's own for a process; undefined when any. */
function possibleSources({ fields, path, world }: View): readonly Ip[] | undefined {
  const to = fields.isSnat ? path.sourceNat?.to : undefined
  if (to !== undefined) {
    const range = parseNatRange(to)
    return range === undefined ? undefined : addressesOf(range)
  }
  if (fields.way === 'wire' || world.nodeIps === undefined) return undefined
  return [...world.nodeIps].flatMap((text) => parseIp(text) ?? []).filter((ip) => ip.family === fields.family)
}

/** What all that the source may be agree in; undefined when they do not. */
function agreedOn(view: View, answerOf: (ip: Ip) => boolean | undefined): boolean | undefined {
  const answers = new Set(possibleSources(view)?.map(answerOf))
  const [only] = answers
  return answers.size === 1 ? only : undefined
}

/** Whether the source is one of the node's own addresses. Nothing known of it, a packet off the wire is none of its own. */
export function sourceIsLocal(view: View): Test {
  const { source, way, isSnat } = view.fields
  const isTranslated = isSnat && view.path.sourceNat?.to !== undefined
  if (source === undefined && !isTranslated) return known(way === 'process')
  const local = source === undefined ? agreedOn(view, (ip) => isLocal(view.world, ip)) : isLocal(view.world, source)
  if (local !== undefined) return known(local)
  if (way === 'process' && !isTranslated) return known(true)
  return askOnPath(view.path, {
    key: isTranslated ? 'source:local:translated' : 'source:local',
    subject: { kind: 'fact' },
    yes: 'the source is an address of this node',
    no: 'the source is not an address of this node',
    usual: false,
  })
}

export function sourcePortIn(view: View, range: PortRange): Test {
  const { sourcePort } = view.fields
  if (sourcePort !== undefined) return known(hasPort(range, sourcePort))
  const text = printPortRange(range, '-')
  return askOnPath(view.path, {
    key: `source-port:${text}`,
    subject: { kind: 'source-port', range },
    yes: `the source port is ${text}`,
    no: `the source port is not ${text}`,
    usual: false,
  })
}

/** An unset interface has the empty name, which only `+` matches. */
export function inInterfaceIs(view: View, pattern: string): Test {
  if (view.fields.way === 'process' && (view.hook === 'OUTPUT' || view.hook === 'POSTROUTING'))
    return known(pattern === '+')
  const { inInterface } = view.fields
  if (inInterface !== undefined) return known(coversPattern(pattern, inInterface))
  if (pattern === '+') return known(true)
  return askOnPath(view.path, {
    key: `in:${pattern}`,
    subject: { kind: 'in-interface', pattern },
    yes: `it comes in through ${pattern}`,
    no: `it does not come in through ${pattern}`,
    usual: false,
  })
}

/** What another node is to get leaves through no loopback. */
function isForElsewhere({ fields, world }: View): boolean {
  return fields.way === 'wire' || isLocal(world, fields.destination) === false
}

export function outInterfaceIs(view: View, pattern: string): Test {
  if (view.hook === 'INGRESS' || view.hook === 'PREROUTING' || view.hook === 'INPUT') return known(pattern === '+')
  const { outInterface } = view.fields
  if (outInterface !== undefined) return known(coversPattern(pattern, outInterface))
  if (pattern === '+') return known(true)
  if (pattern === 'lo' && isForElsewhere(view)) return known(false)
  const { isRerouted } = view.fields
  const leaves = isRerouted ? 'leave for its new destination' : 'leave'
  return askOnPath(view.path, {
    key: `out:${pattern}${isRerouted ? ':rerouted' : ''}`,
    subject: { kind: 'out-interface', pattern, isRerouted },
    yes: `it ${leaves.replace('leave', 'leaves')} through ${pattern}`,
    no: `it does not ${leaves} through ${pattern}`,
    usual: false,
  })
}
