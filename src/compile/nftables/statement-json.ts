/** Statements and rules as the JSON of nft 1.0.6, in its own order of keys. */
import { expressionJson, keyJson, oneOrMany, verdictJson } from './expression-json'
import type { Json, JsonObject } from './json-text'
import { isVerdict } from './print-expression'
import { defaultReject, printStatement, type StatementPlace } from './print-statement'
import type { TableFamily } from './ruleset'
import { stateJson, templateJson } from './state-json'
import type { Log, Nat, SetUpdate, Statement } from './statement'

export function statementJson(statement: Statement, family: TableFamily): Json {
  switch (statement.kind) {
    case 'match': {
      const { operator, left, right } = statement
      return { match: { op: operator, left: expressionJson(left), right: expressionJson(right) } }
    }
    case 'vmap':
      return { vmap: { key: expressionJson(statement.key), data: expressionJson(statement.data) } }
    case 'mangle':
      return { mangle: { key: expressionJson(statement.key), value: expressionJson(statement.value) } }
    case 'snat':
    case 'dnat':
    case 'masquerade':
    case 'redirect':
      return natJson(statement)
    case 'set-update':
      return setUpdateJson(statement, family)
    case 'object':
      return { [statement.object]: expressionJson(statement.name) }
    case 'reject':
      return { reject: rejectJson(statement, family) }
    case 'log':
      return { log: logJson(statement) }
    case 'counter':
    case 'limit':
    case 'quota':
    case 'ct-count':
    case 'last':
      return stateJson(statement)
    case 'other':
      return statement.syntax === 'json' ? JSON.parse(statement.text) : statement.text
    default:
      return rareJson(statement, family)
  }
}

type Rare = Extract<
  Statement,
  {
    readonly kind:
      | 'block'
      | 'queue'
      | 'notrack'
      | 'flow'
      | 'meter'
      | 'tproxy'
      | 'synproxy'
      | 'dup'
      | 'fwd'
      | 'reset'
      | 'xt'
      | 'accept'
      | 'drop'
      | 'continue'
      | 'return'
      | 'jump'
      | 'goto'
  }
>

function rareJson(statement: Rare, family: TableFamily): Json {
  switch (statement.kind) {
    case 'block':
      return asText(statement, family)
    case 'queue':
      return { queue: orNull({ num: optionalJson(statement.number), flags: oneOrMany(statement.flags) }) }
    case 'notrack':
      return { notrack: null }
    case 'flow':
      return { flow: { op: 'add', flowtable: `@${statement.flowtable}` } }
    case 'meter': {
      const { name, size, element } = statement
      const [stmt] = element.statements ?? []
      const key = keyJson({ key: element.key })
      return { meter: { key, stmt: stmt && templateJson(stmt), size, name } }
    }
    case 'tproxy':
      return {
        tproxy: {
          family: statement.family,
          addr: optionalJson(statement.address),
          port: optionalJson(statement.port),
        },
      }
    case 'synproxy': {
      const { mss, windowScale, flags } = statement
      return { synproxy: orNull({ mss, wscale: windowScale, flags: oneOrMany(flags) }) }
    }
    case 'dup':
      return { dup: { addr: optionalJson(statement.address), dev: optionalJson(statement.device) } }
    case 'fwd':
      return {
        fwd: {
          dev: expressionJson(statement.device),
          family: statement.family,
          addr: optionalJson(statement.address),
        },
      }
    case 'reset':
      return { reset: expressionJson(statement.option) }
    case 'xt':
      return { xt: { type: statement.type, name: statement.name } }
    default:
      return isVerdict(statement) ? verdictJson(statement) : (statement satisfies never)
  }
}

/** nft 1.0.6 has no JSON for some statements and puts their text there. */
function asText(statement: Statement, family: TableFamily): string {
  const place: StatementPlace = { family, indent: '\t\t', isScript: false }
  return printStatement(statement, place)
}

function optionalJson(expression: Parameters<typeof expressionJson>[0] | undefined): Json | undefined {
  return expression === undefined ? undefined : expressionJson(expression)
}

function orNull(object: JsonObject): JsonObject | null {
  return Object.values(object).every((value) => value === undefined) ? null : object
}

function natJson({ kind, family, isPrefix, address, port, flags }: Nat): JsonObject {
  const told = isPrefix ? [...flags, 'netmap'] : flags
  return {
    [kind]: orNull({
      family,
      addr: optionalJson(address),
      port: optionalJson(port),
      flags: oneOrMany(told),
      type_flags: isPrefix ? 'prefix' : undefined,
    }),
  }
}

function setUpdateJson(statement: SetUpdate, family: TableFamily): Json {
  const { operation, set, element } = statement
  if (element.data !== undefined) return asText(statement, family)
  const { statements = [], ...rest } = element
  const stmt = statements.length === 0 ? undefined : statements.map(templateJson)
  return { set: { op: operation, elem: keyJson(rest), set: `@${set}`, stmt } }
}

function rejectJson({ type, code }: Extract<Statement, { readonly kind: 'reject' }>, family: TableFamily): JsonObject {
  if (type === undefined) return { type: defaultReject(family), expr: 'port-unreachable' }
  return { type, expr: optionalJson(code) }
}

function logJson({ prefix, group, snaplen, queueThreshold, level, flags }: Log): JsonObject | null {
  return orNull({ prefix, group, snaplen, 'queue-threshold': queueThreshold, level, flags: oneOrMany(flags) })
}
