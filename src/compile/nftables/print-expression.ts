/** Expressions as `nft list` (1.0.6) writes them. */
import type { Element, Expression, Selector, Verdict } from './expression'
import { printDuration } from './print-duration'
import { printState } from './print-state'
import { printRangeEnd, printValue } from './print-value'
import { typesOf, type ValueType, valueTypeOf } from './value-type'

/** `types` are those of the parts of the value: of what it is compared with, or of what it is written to. */
export function printExpression(expression: Expression, types: readonly ValueType[]): string {
  switch (expression.kind) {
    case 'value':
      return printValue(expression.value, types[0])
    case 'wildcard':
      return '*'
    case 'list':
      return expression.items.map((item) => printExpression(item, types)).join(',')
    case 'concat':
      return printParts(expression.parts, types)
    case 'prefix':
      return `${printExpression(expression.address, types)}/${expression.length}`
    case 'range':
      return `${printEnd(expression.from, types)}-${printEnd(expression.to, types)}`
    case 'set':
      return printAnonymousSet(expression.elements, types)
    case 'reference':
      return `@${expression.set}`
    case 'map':
      return printMap(expression, types)
    case 'binary':
      return printBinary(expression, types)
    case 'other':
      return expression.text
    default:
      return printSelector(expression)
  }
}

/** What stands on the left side of a match: it has a type of its own. */
export function printLeft(expression: Expression): string {
  return printExpression(expression, typesOf(expression))
}

export function printVerdict(verdict: Verdict): string {
  return 'target' in verdict ? `${verdict.kind} ${verdict.target}` : verdict.kind
}

export function isVerdict(data: Expression | Verdict): data is Verdict {
  switch (data.kind) {
    case 'accept':
    case 'drop':
    case 'continue':
    case 'return':
    case 'jump':
    case 'goto':
      return true
    default:
      return false
  }
}

export type ElementTypes = { readonly key: readonly ValueType[]; readonly data: readonly ValueType[] }

/** `10.0.0.1 . tcp . 80 counter packets 0 bytes 0 timeout 1h expires 5m comment "x" : goto y`. */
export function printElement(element: Element, types: ElementTypes): string {
  let text = printExpression(element.key, types.key)
  for (const state of element.statements ?? []) text += ` ${printState(state)}`
  if (element.timeoutMilliseconds !== undefined) text += ` timeout ${printDuration(element.timeoutMilliseconds)}`
  if (element.expiresMilliseconds !== undefined) text += ` expires ${printDuration(element.expiresMilliseconds)}`
  if (element.comment !== undefined) text += ` comment "${element.comment}"`
  return element.data === undefined ? text : `${text} : ${printData(element.data, types.data)}`
}

export function printData(data: Expression | Verdict, types: readonly ValueType[]): string {
  return isVerdict(data) ? printVerdict(data) : printExpression(data, types)
}

function printAnonymousSet(elements: readonly Element[], key: readonly ValueType[], data = key): string {
  const types = { key, data }
  return `{ ${elements.map((element) => printElement(element, types)).join(', ')} }`
}

/** `key map { … }`; the values have the type of what the map's result is for. */
function printMap(map: Extract<Expression, { readonly kind: 'map' }>, types: readonly ValueType[]): string {
  const { key, data } = map
  const written =
    data.kind === 'set' ? printAnonymousSet(data.elements, typesOf(key), types) : printExpression(data, types)
  return `${printLeft(key)} map ${written}`
}

/** `key vmap { … }`. */
export function printVerdictMap(key: Expression, data: Expression): string {
  return `${printLeft(key)} vmap ${printExpression(data, typesOf(key))}`
}

function printParts(parts: readonly Expression[], types: readonly ValueType[]): string {
  return parts.map((part, at) => printExpression(part, typesAt(types, at))).join(' . ')
}

function typesAt(types: readonly ValueType[], at: number): readonly ValueType[] {
  const type = types[at]
  return type === undefined ? [] : [type]
}

function printEnd(end: Expression, types: readonly ValueType[]): string {
  return end.kind === 'value' ? printRangeEnd(end.value, types[0]) : printExpression(end, types)
}

const integer = [valueTypeOf('integer')]
/** The tighter an operator binds, the lower. */
const precedence = { '<<': 1, '>>': 1, '&': 2, '^': 3, '|': 4 } as const

function printBinary(
  expression: Extract<Expression, { readonly kind: 'binary' }>,
  types: readonly ValueType[],
): string {
  const { operator, left, right } = expression
  const isShift = operator === '<<' || operator === '>>'
  const print = (side: Expression, own: readonly ValueType[]): string => {
    const text = printExpression(side, own)
    return side.kind === 'binary' && precedence[side.operator] > precedence[operator] ? `(${text})` : text
  }
  return `${print(left, types)} ${operator} ${print(right, isShift ? integer : types)}`
}

/** `meta` is left out before these. */
const plainMeta = new Set(['iif', 'oif', 'iifname', 'oifname', 'iifgroup', 'oifgroup'])

export function printSelector(selector: Selector): string {
  switch (selector.kind) {
    case 'payload':
      return `${selector.protocol} ${selector.field}`
    case 'raw-payload':
      return `@${selector.base},${selector.offset},${selector.length}`
    case 'meta':
      return plainMeta.has(selector.key) ? selector.key : `meta ${selector.key}`
    case 'ct':
      return words('ct', selector.direction, selector.key)
    case 'rt':
      return words('rt', selector.family, selector.key)
    case 'fib':
      return `fib ${selector.flags.join(' . ')} ${selector.result}`
    case 'socket':
      return words('socket', selector.key, selector.level === undefined ? undefined : `level ${selector.level}`)
    case 'osf':
      return words('osf', selector.ttl === undefined ? undefined : `ttl ${selector.ttl}`, selector.key)
    case 'ipsec':
      return words('ipsec', selector.direction, printPolicy(selector.policy), selector.family, selector.key)
    case 'exthdr':
      return selector.field === undefined ? `exthdr ${selector.name}` : `${selector.name} ${selector.field}`
    case 'tcp-option':
      return words('tcp option', selector.name, selector.field)
    case 'raw-tcp-option':
      return `tcp option @${selector.option},${selector.offset},${selector.length}`
    case 'ip-option':
      return words('ip option', selector.name, selector.field)
    case 'sctp-chunk':
      return words('sctp chunk', selector.name, selector.field)
    case 'dccp-option':
      return `dccp option ${selector.type}`
    case 'numgen':
      return `numgen ${selector.mode} mod ${selector.modulus}${printOffset(selector.offset)}`
    case 'jhash':
      return (
        words('jhash', printLeft(selector.of), `mod ${selector.modulus}`, printSeed(selector.seed)) +
        printOffset(selector.offset)
      )
    case 'symhash':
      return `symhash mod ${selector.modulus}${printOffset(selector.offset)}`
    default:
      return selector satisfies never
  }
}

function words(...parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined).join(' ')
}

function printOffset(offset: number): string {
  return offset === 0 ? '' : ` offset ${offset}`
}

function printSeed(seed: number | undefined): string | undefined {
  return seed === undefined ? undefined : `seed 0x${seed.toString(16)}`
}

function printPolicy(policy: number): string | undefined {
  return policy === 0 ? undefined : `spnum ${policy}`
}
