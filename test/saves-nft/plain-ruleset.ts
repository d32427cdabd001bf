/** A ruleset without what differs from one listing of it to the next: lines, handles, moments; and without what JSON lacks. */
import type { Expression, Verdict } from '#compile/nftables/expression'
import { defaultReject } from '#compile/nftables/print-statement'
import type {
  Chain,
  DataType,
  Flowtable,
  NamedObject,
  NamedSet,
  Ruleset,
  Table,
  TableFamily,
} from '#compile/nftables/ruleset'
import type { Match, Rule, Statement } from '#compile/nftables/statement'
import { typesOfData } from '#compile/nftables/value-type'

/** `json`: without what nft 1.0.6 leaves out of its JSON, or tells there less exactly; `numeric`: the same of `nft -n`. */
export type Against = 'text' | 'numeric' | 'json'

export function plainRuleset({ tables }: Ruleset, against: Against = 'text'): unknown {
  return Array.from(tables.values(), (table) => plainTable(table, against))
}

function plainTable(table: Table, against: Against): unknown {
  const { family, name, comment, flags } = table
  return {
    family,
    name,
    flags,
    ...(against !== 'json' && { comment }),
    objects: table.objects.map(plainObject),
    sets: Array.from(table.sets.values(), (set) => plainSet(set, against)),
    flowtables: Array.from(table.flowtables.values(), (flowtable) => plainFlowtable(flowtable, against)),
    chains: Array.from(table.chains.values(), (chain) => plainChain(chain, family, against)),
  }
}

function withoutPlace<T extends object>(one: T): Omit<T, 'line' | 'text' | 'handle'> {
  const { line, text, handle, ...rest } = one as T & Record<'line' | 'text' | 'handle', unknown>
  return rest
}

function plainObject(object: NamedObject): unknown {
  return object.kind === 'other' ? { name: object.name, text: object.text } : withoutPlace(object)
}

function plainFlowtable({ name, hook, priority, devices, flags, hasCounter }: Flowtable, against: Against): unknown {
  return { name, hook, priority, devices, ...(against !== 'json' && { flags, hasCounter }) }
}

function plainSet(set: NamedSet, against: Against): unknown {
  const elements = set.elements.map(({ expiresMilliseconds, ...element }) => element)
  const plain = { ...withoutPlace(set), elements }
  if (against !== 'json') return plain
  const { key, data, flags, isAutoMerged, isDataInterval, ...rest } = plain
  return {
    ...rest,
    key: typeNames(key),
    ...(data && { data: typeNames(data) }),
    flags: flags.filter((flag) => flag !== 'dynamic'),
  }
}

function typeNames(type: DataType): readonly string[] {
  return type.kind === 'type' ? type.names : typesOfData(type).map(({ name }) => name)
}

function plainChain({ name, comment, base, rules }: Chain, family: TableFamily, against: Against): unknown {
  const plain = rules.map((rule) => plainRule(rule, family, against))
  if (against !== 'json') return { name, comment, base, rules: plain }
  return { name, base: base && { ...base, devices: [], flags: [] }, rules: plain }
}

function plainRule(rule: Rule, family: TableFamily, against: Against): unknown {
  const statements = rule.statements.map((statement) => plainStatement(statement, family, against))
  return rule.comment === undefined ? { statements } : { statements, comment: rule.comment }
}

function plainStatement(statement: Statement, family: TableFamily, against: Against): unknown {
  switch (statement.kind) {
    case 'block':
      return { ...statement, rules: statement.rules.map((rule) => plainRule(rule, family, against)) }
    case 'reject': {
      const isUsual = statement.type === defaultReject(family) && statement.code?.kind === 'value'
      return isUsual && statement.code.value === 'port-unreachable' ? { kind: 'reject' } : statement
    }
    case 'set-update': {
      const { timeoutMilliseconds, ...element } = statement.element
      if (timeoutMilliseconds === undefined || against === 'text') return statement
      return { ...statement, element, timeoutSeconds: Math.floor(timeoutMilliseconds / 1000) }
    }
    case 'match':
      return against === 'numeric' ? plainMatch(statement) : statement
    default:
      return statement
  }
}

/** In numbers, `exists` of an interface is the first interface, and of an option by number it is 1. */
function plainMatch(match: Match): Match {
  const { left, right } = match
  if (right.kind !== 'value' || typeof right.value !== 'boolean') return match
  if (left.kind === 'fib') return { ...match, right: { kind: 'value', value: String(Number(right.value)) } }
  if (left.kind === 'raw-tcp-option') return { ...match, right: { kind: 'value', value: Number(right.value) } }
  return match
}

/** The words that a parser did not know, wherever they are. */
export function unknownParts({ tables }: Ruleset): string[] {
  const found: string[] = []
  const visit = (value: Statement | Expression | Verdict | readonly unknown[] | object): void => {
    if ('kind' in value && value.kind === 'other' && 'text' in value) found.push(String(value.text))
    for (const inside of Object.values(value)) if (typeof inside === 'object' && inside !== null) visit(inside)
  }
  for (const table of tables.values()) {
    for (const set of table.sets.values()) visit(set)
    for (const chain of table.chains.values()) for (const { statements } of chain.rules) visit(statements)
  }
  return found
}
