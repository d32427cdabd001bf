/** Statements and rules as `nft list` (1.0.6) writes them. */
import type { Element, Expression } from './expression'
import { isVerdict, printElement, printExpression, printLeft, printVerdict, printVerdictMap } from './print-expression'
import { printState } from './print-state'
import type { TableFamily } from './ruleset'
import type { Log, Match, Nat, ObjectUse, Rule, SetUpdate, Statement } from './statement'
import { typesOf, type ValueType, valueTypeOf } from './value-type'

/** `isScript`: for `nft -f`, where a few statements want another spelling than lists have. */
export type StatementPlace = { readonly family: TableFamily; readonly indent: string; readonly isScript: boolean }

export function printRule({ statements, comment }: Rule, place: StatementPlace): string {
  const text = statements.map((statement) => printStatement(statement, place)).join(' ')
  return comment === undefined ? text : `${text} comment "${comment}"`
}

export function printStatement(statement: Statement, place: StatementPlace): string {
  switch (statement.kind) {
    case 'match':
      return printMatch(statement, place)
    case 'vmap':
      return printVerdictMap(statement.key, statement.data)
    case 'mangle':
      return `${printLeft(statement.key)} set ${printExpression(statement.value, typesOf(statement.key))}`
    case 'snat':
    case 'dnat':
    case 'masquerade':
    case 'redirect':
      return printNat(statement, place)
    case 'set-update':
      return printSetUpdate(statement)
    case 'object':
      return printObjectUse(statement)
    case 'reject':
      return printReject(statement, place)
    case 'log':
      return printLog(statement)
    case 'block':
      return printBlock(statement, place)
    case 'counter':
    case 'limit':
    case 'quota':
    case 'ct-count':
    case 'last':
    case 'other':
      return printState(statement)
    default:
      return printRare(statement, place)
  }
}

type Rare = Exclude<
  Statement,
  | Match
  | Nat
  | SetUpdate
  | ObjectUse
  | Log
  | {
      readonly kind:
        | 'vmap'
        | 'mangle'
        | 'reject'
        | 'block'
        | 'counter'
        | 'limit'
        | 'quota'
        | 'ct-count'
        | 'last'
        | 'other'
    }
>

function printRare(statement: Rare, { family }: StatementPlace): string {
  switch (statement.kind) {
    case 'queue':
      return printQueue(statement)
    case 'notrack':
      return 'notrack'
    case 'flow':
      return `flow add @${statement.flowtable}`
    case 'meter':
      return `meter ${statement.name}${option('size', statement.size)} ${braces(statement.element)}`
    case 'tproxy':
      return `tproxy${word(statement.family)} to ${printTproxy(statement)}`
    case 'synproxy':
      return `synproxy${option('mss', statement.mss)}${option('wscale', statement.windowScale)}${statement.flags.map(word).join('')}`
    case 'dup':
      return printDup(statement, family)
    case 'fwd': {
      const device = printExpression(statement.device, interfaceIndex)
      if (statement.address === undefined) return `fwd to ${device}`
      return `fwd${word(statement.family)} to ${printExpression(statement.address, [])} device ${device}`
    }
    case 'reset':
      return `reset ${printLeft(statement.option)}`
    case 'xt':
      return `xt ${statement.type} ${statement.name}`
    default:
      return isVerdict(statement) ? printVerdict(statement) : (statement satisfies never)
  }
}

const interfaceIndex = [valueTypeOf('iface_index')]
const port = [valueTypeOf('inet_service')]
const addressAndPort = [valueTypeOf('address'), valueTypeOf('inet_service')]

function word(text: string | undefined): string {
  return text === undefined ? '' : ` ${text}`
}

function option(name: string, value: number | undefined): string {
  return value === undefined ? '' : ` ${name} ${value}`
}

function printMatch({ operator, left, right }: Match, { isScript }: StatementPlace): string {
  if (left.kind === 'binary' && left.operator === '&' && left.right.kind === 'list')
    return printFlagMatch(operator, left, right)
  const types = typesOf(left)
  const sign = needsSign(operator, left, right, types) ? `${operator} ` : ''
  return `${printExpression(left, types)} ${sign}${printExpression(isScript ? keptSet(right) : right, types)}`
}

/** nft makes a value of a set with one element; the same element twice is still a set of one. */
function keptSet(right: Expression): Expression {
  if (right.kind !== 'set' || right.elements.length !== 1) return right
  return { kind: 'set', elements: [...right.elements, ...right.elements] }
}

/** `==` and `in` go without saying, but a flag without a sign means `in`, and after an operator a sign must follow. */
function needsSign(
  operator: Match['operator'],
  left: Expression,
  right: Expression,
  [type]: readonly ValueType[],
): boolean {
  if (operator === 'in') return false
  return operator !== '==' || left.kind === 'binary' || (type?.isBitmask === true && right.kind === 'value')
}

/** `tcp flags syn / fin,syn,rst,ack`: the value, then which flags it is about. */
function printFlagMatch(
  operator: Match['operator'],
  left: Extract<Expression, { readonly kind: 'binary' }>,
  right: Expression,
): string {
  const types = typesOf(left)
  const sign = operator === '==' ? '' : `${operator} `
  return `${printExpression(left.left, types)} ${sign}${printExpression(right, types)} / ${printExpression(left.right, types)}`
}

function printNat({ kind, family, isPrefix, address, port: toPort, flags }: Nat, { isScript }: StatementPlace): string {
  const isPair = isScript && address?.kind === 'map' && hasPairs(address.data)
  const to = printTarget(address, toPort)
  const form = isPrefix ? ' prefix' : isPair ? ' addr . port' : ''
  const target = to === '' ? '' : ` to ${to}`
  return `${kind}${word(family)}${form}${target}${flags.length === 0 ? '' : ` ${flags.join(',')}`}`
}

function hasPairs(data: Expression): boolean {
  return data.kind === 'set' && data.elements[0]?.data?.kind === 'concat'
}

function printTarget(address: Expression | undefined, toPort: Expression | undefined): string {
  const written = toPort === undefined ? '' : `:${printExpression(toPort, port)}`
  if (address === undefined) return written
  const isBracketed = toPort !== undefined
  if (address.kind !== 'range') return bracket(address, isBracketed) + written
  return `${bracket(address.from, isBracketed)}-${bracket(address.to, isBracketed)}${written}`
}

function bracket(address: Expression, isBracketed: boolean): string {
  const text = printExpression(address, addressAndPort)
  return isBracketed && address.kind === 'value' && text.includes(':') ? `[${text}]` : text
}

function printTproxy({ address, port: toPort }: Extract<Statement, { readonly kind: 'tproxy' }>): string {
  const host = address === undefined ? '' : bracket(address, true)
  return toPort === undefined ? host : `${host}:${printExpression(toPort, port)}`
}

/** In family netdev a device stands where other families have an address. */
function printDup({ address, device }: Extract<Statement, { readonly kind: 'dup' }>, family: TableFamily): string {
  const types = family === 'netdev' ? interfaceIndex : []
  const to = address === undefined ? '' : ` to ${printExpression(address, types)}`
  return `dup${to}${device === undefined ? '' : ` device ${printExpression(device, interfaceIndex)}`}`
}

function printSetUpdate({ operation, set, element }: SetUpdate): string {
  return `${operation} @${set} ${braces(element)}`
}

/** Here the states of an element come after its timeout. */
function braces(element: Element): string {
  const { statements = [], data, ...rest } = element
  const types = { key: typesOf(element.key), data: data === undefined || isVerdict(data) ? [] : typesOf(data) }
  const states = statements.map((state) => ` ${state.kind === 'counter' ? 'counter' : printState(state)}`).join('')
  const value =
    data === undefined ? '' : ` : ${isVerdict(data) ? printVerdict(data) : printExpression(data, types.data)}`
  return `{ ${printElement(rest, types)}${states}${value} }`
}

const objectName = [valueTypeOf('string')]

function printObjectUse({ object, name }: ObjectUse): string {
  const isSet = object.startsWith('ct ') || object === 'secmark'
  const subject = object === 'secmark' ? 'meta secmark' : object
  return `${subject} ${isSet ? 'set' : 'name'} ${printExpression(name, objectName)}`
}

/** What `reject` alone means in a table of the family. */
export function defaultReject(family: TableFamily): 'icmp' | 'icmpv6' | 'icmpx' {
  if (family === 'ip') return 'icmp'
  return family === 'ip6' ? 'icmpv6' : 'icmpx'
}

function printReject(
  { type, code }: Extract<Statement, { readonly kind: 'reject' }>,
  { family }: StatementPlace,
): string {
  if (type === undefined) return 'reject'
  if (type === 'tcp reset' || code === undefined) return `reject with ${type}`
  const text = printExpression(code, [valueTypeOf(`${type}_code`)])
  return type === defaultReject(family) && text === 'port-unreachable' ? 'reject' : `reject with ${type} ${text}`
}

function printLog({ prefix, group, snaplen, queueThreshold, level, flags }: Log): string {
  const start = prefix === undefined ? 'log' : `log prefix "${prefix}"`
  const numbers = `${option('group', group)}${option('snaplen', snaplen)}${option('queue-threshold', queueThreshold)}`
  return `${start}${numbers}${level === undefined ? '' : ` level ${level}`}${printLogFlags(flags)}`
}

/** Both flags of TCP share one word. */
function printLogFlags(flags: readonly string[]): string {
  const ofTcp = flags.filter((flag) => flag.startsWith('tcp ')).map((flag) => flag.slice(4))
  const others = flags.filter((flag) => !flag.startsWith('tcp '))
  const all = ofTcp.length === 0 ? others : [`tcp ${ofTcp.join(',')}`, ...others]
  return all.map((flag) => ` flags ${flag}`).join('')
}

function printQueue({ number, flags }: Extract<Statement, { readonly kind: 'queue' }>): string {
  const how = flags.length === 0 ? '' : ` flags ${flags.join(',')}`
  return `queue${how}${number === undefined ? '' : ` to ${printExpression(number, [])}`}`
}

function printBlock({ verdict, rules }: Extract<Statement, { readonly kind: 'block' }>, place: StatementPlace): string {
  const inner = { ...place, indent: `${place.indent}\t` }
  const lines = rules.map((rule) => `${inner.indent}${printRule(rule, inner)}\n`)
  return `${verdict} {\n${lines.join('')}${place.indent}}`
}
