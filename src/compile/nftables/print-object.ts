/** Named objects as `nft list` (1.0.6) writes them. */
import { printDuration } from './print-duration'
import { printBytes, printQuota, printRate } from './print-state'
import type { NamedObject } from './ruleset'

/** The lines between the braces, without their indent. */
export function objectLines(object: NamedObject): string[] {
  const lines = bodyLines(object)
  return object.comment === undefined ? lines : [`comment "${object.comment}"`, ...lines]
}

function bodyLines(object: NamedObject): string[] {
  switch (object.kind) {
    case 'counter':
      return [`packets ${object.packets} bytes ${object.bytes}`]
    case 'quota':
      return [`${printQuota(object)}${object.usedBytes === 0 ? '' : ` used ${printBytes(object.usedBytes)}`}`]
    case 'limit':
      return [printRate(object)]
    case 'ct helper':
      return [`type "${object.type}" protocol ${object.protocol}`, ...l3Lines(object.l3protocol)]
    case 'ct timeout': {
      const policy = object.policy.map(({ state, seconds }) => `${state} : ${seconds}`).join(', ')
      return [`protocol ${object.protocol}`, ...l3Lines(object.l3protocol), `policy = { ${policy} }`]
    }
    case 'ct expectation':
      return [
        `protocol ${object.protocol}`,
        `dport ${object.port}`,
        `timeout ${printDuration(object.timeoutMilliseconds)}`,
        `size ${object.size}`,
        ...l3Lines(object.l3protocol),
      ]
    case 'synproxy': {
      const flags = object.flags.length === 0 ? [] : [object.flags.join(' ')]
      return [...optionLine('mss', object.mss), ...optionLine('wscale', object.windowScale), ...flags]
    }
    case 'secmark':
      return [`"${object.context}"`]
    case 'other':
      return [object.text]
    default:
      return object satisfies never
  }
}

function l3Lines(protocol: string | undefined): string[] {
  return protocol === undefined ? [] : [`l3proto ${protocol}`]
}

function optionLine(name: string, value: number | undefined): string[] {
  return value === undefined ? [] : [`${name} ${value}`]
}
