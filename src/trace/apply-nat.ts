/** DNAT, REDIRECT, NETMAP, TPROXY, SNAT and MASQUERADE: who the packet is for, and from, after the rule. */
import { compareIp, type Ip, printIp } from '#base/ip'
import { maskWords, parsePrefixOrIp } from '#base/prefix'
import type { Rule } from '#compile/iptables/rule'
import { parseMark } from './matches/mark'
import { addressesOf, parseNatRange, portIn, printAtPort, printTarget } from './nat-range'
import type { Fields, HopEvent, Path } from './path'
import { type Effect, end, endUnknown, hopAt, optionValue, type Place } from './place'
import { redirectTo } from './redirect'

/** A range of addresses is spread over the connections: each address is a path with its share. */
export function applyDnat(place: Place, path: Path): Effect {
  const text = optionValue(place.rule.action?.options ?? [], '--to-destination') ?? ''
  const range = parseNatRange(text)
  const addresses = range === undefined ? undefined : addressesOf(range)
  if (range === undefined || addresses === undefined) {
    return endUnknown(path, hopAt(place, `sent to ${text}`), `"${text}" is not a destination that can be listed`)
  }
  const { fields } = path
  const ports = range.ports
  const port = ports === undefined ? fields.destinationPort : portIn(ports, fields.destinationPort, isRandom(place))
  const choices = addresses.length === 0 ? [fields.destination] : addresses
  const paths = choices.flatMap((ip) => {
    const proxy = ports !== undefined && port === undefined ? printTarget(ip, ports) : undefined
    const sent = { ...fields, destination: ip, destinationPort: port, isDnat: true, proxy }
    const did = `sent to ${proxy ?? printTarget(ip, port)}`
    return end(
      { ...path, share: path.share / choices.length, fields: sent },
      'accept',
      translated(place, fields, { did, after: sent }),
    ).paths
  })
  return { kind: 'end', paths }
}

function translated(place: Place, before: Fields, step: { readonly did: string; readonly after: Fields }): HopEvent {
  return { ...hopAt(place, step.did), before: destinationText(before), after: destinationText(step.after) }
}

function destinationText(fields: Fields): string {
  return fields.redirectedTo === undefined
    ? printTarget(fields.destination, fields.destinationPort)
    : (fields.proxy ?? 'this node')
}

/** To the node itself: its loopback address for a local process, an address of the interface it came in by otherwise. */
export function applyRedirect(place: Place, path: Path): Effect {
  const { fields } = path
  const ports = optionValue(place.rule.action?.options ?? [], '--to-ports', '--to-port')
  const port = ports === undefined ? fields.destinationPort : portIn(ports, fields.destinationPort, isRandom(place))
  const { sent, shown } = redirectTo(place.world, fields, { port, ports })
  return end(
    { ...path, fields: sent },
    'accept',
    translated(place, fields, { did: `redirected to ${shown}`, after: sent }),
  )
}

export function applyNetmap(place: Place, path: Path): Effect {
  const text = optionValue(place.rule.action?.options ?? [], '--to') ?? ''
  const prefix = parsePrefixOrIp(text)
  if (prefix === undefined) return endUnknown(path, hopAt(place, `mapped to ${text}`), `"${text}" is not a network`)
  const mask = maskWords(prefix.ip.family, prefix.length)
  const map = (ip: Ip): Ip => ({
    family: ip.family,
    words: ip.words.map(
      (word, index) => (((prefix.ip.words[index] ?? 0) & (mask[index] ?? 0)) | (word & ~(mask[index] ?? 0))) >>> 0,
    ),
  })
  const { fields } = path
  if (place.hook === 'POSTROUTING' || place.hook === 'INPUT') {
    const source = fields.source === undefined ? undefined : map(fields.source)
    const sourceNat = { conditions: place.conditions, rule: place.rule, to: text }
    return end(
      { ...path, fields: { ...fields, source, isSnat: true }, sourceNat },
      'accept',
      hopAt(place, `source mapped to ${text}`),
    )
  }
  const sent = { ...fields, destination: map(fields.destination), isDnat: true }
  return end(
    { ...path, fields: sent },
    'accept',
    translated(place, fields, { did: `mapped to ${printIp(sent.destination)}`, after: sent }),
  )
}

/** The packet keeps its destination and is delivered to a proxy on the node, if the node's routes send marked packets there. */
export function applyTproxy(place: Place, path: Path): Effect {
  const options = place.rule.action?.options ?? []
  const port = optionValue(options, '--on-port') ?? '0'
  const ip = optionValue(options, '--on-ip')
  const mark = parseMark(optionValue(options, '--tproxy-mark') ?? '0x0/0x0')
  const { fields } = path
  const proxyPort = port === '0' ? String(fields.destinationPort ?? '') : port
  const isAny = ip === undefined || ip === '0.0.0.0' || ip === '::'
  const proxy = isAny ? `this node:${proxyPort}` : printAtPort(ip, proxyPort)
  const next =
    fields.mark === undefined || mark === undefined ? undefined : ((fields.mark & ~mark.mask) ^ mark.value) >>> 0
  const sent = { ...fields, mark: next, isRedirected: true, proxy }
  return end({ ...path, fields: sent }, 'accept', hopAt(place, `handed to the transparent proxy at ${proxy}`))
}

/** The reason of a masquerade behind a mark is the rule that set the mark. */
export function applySourceNat(place: Place, path: Path): Effect {
  const { rule } = place
  const to = optionValue(rule.action?.options ?? [], '--to-source')
  const range = to === undefined ? undefined : parseNatRange(to)
  const isOne = range?.from !== undefined && range.to !== undefined && compareIp(range.from, range.to) === 0
  const keepsPort = range?.ports === undefined && !changesPort(rule)
  const cause = place.hasMarkGate ? path.markCause : undefined
  const conditions = [...new Set([...(cause?.conditions ?? []), ...place.conditions])]
  const sourceNat = { conditions, rule: cause?.rule ?? rule, to }
  const isPortOnly = range !== undefined && range.from === undefined
  const source = isOne ? range.from : isPortOnly ? path.fields.source : undefined
  const sourcePort = keepsPort ? path.fields.sourcePort : undefined
  const fields = { ...path.fields, source, sourcePort, isSnat: true }
  const did = to === undefined ? 'source replaced by the address of the outgoing interface' : `source replaced by ${to}`
  return end(
    { ...path, fields, sourceNat, sourceInside: undefined, sourceOutside: undefined },
    'accept',
    hopAt(place, did),
  )
}

/** Otherwise the port stays, unless another connection has it. */
function changesPort({ action }: Rule): boolean {
  return action?.options.some(({ flag }) => ['--to-ports', '--random', '--random-fully'].includes(flag)) ?? false
}

function isRandom({ rule }: Place): boolean {
  return rule.action?.options.some(({ flag }) => flag === '--random' || flag === '--random-fully') ?? false
}
