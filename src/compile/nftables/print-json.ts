/** A ruleset as `nft -j list ruleset` (1.0.6) prints it. */
import { elementJson, secondsOf } from './expression-json'
import { type Json, type JsonObject, jsonText } from './json-text'
import { objectJson } from './object-json'
import { printDataType } from './print-set'
import type { Chain, DataType, Flowtable, NamedSet, Ruleset, Table } from './ruleset'
import { templateJson } from './state-json'
import type { Rule } from './statement'
import { statementJson } from './statement-json'
import { typesOfData } from './value-type'

const metainfo = { version: '1.0.6', release_name: 'Lester Gooch #5', json_schema_version: 1 }

/** Handles are there when they are known. */
export function printJson({ tables }: Ruleset): string {
  const objects = [{ metainfo }, ...Array.from(tables.values()).flatMap(tableJson)]
  return `{"nftables": [${objects.map(jsonText).join(', ')}]}\n`
}

/** All rules come after all chains. */
function tableJson(table: Table): Json[] {
  const { family, name, handle, flags } = table
  const chains = [...table.chains.values()]
  return [
    { table: { family, name, handle, flags: flags.length > 1 ? flags : flags[0] } },
    ...table.objects.map((object) => objectJson(object, table)),
    ...Array.from(table.sets.values(), (set) => setJson(set, table)),
    ...Array.from(table.flowtables.values(), (flowtable) => flowtableJson(flowtable, table)),
    ...chains.map((chain) => chainJson(chain, table)),
    ...chains.flatMap((chain) => chain.rules.map((rule) => ruleJson(rule, chain, table))),
  ]
}

function setJson(set: NamedSet, table: Table): JsonObject {
  const { name, handle, comment, policy, size, timeoutMilliseconds, gcIntervalMilliseconds } = set
  const flags = set.flags.filter((flag) => flag !== 'dynamic')
  return {
    [set.data === undefined ? 'set' : 'map']: {
      family: table.family,
      name,
      table: table.name,
      type: keyTypeJson(set.key),
      handle,
      comment,
      map: set.data === undefined ? undefined : dataTypeJson(set.data),
      policy: policy === 'memory' ? policy : undefined,
      size,
      flags: flags.length === 0 ? undefined : flags,
      timeout: secondsOf(timeoutMilliseconds),
      'gc-interval': secondsOf(gcIntervalMilliseconds),
      elem: set.elements.length === 0 ? undefined : set.elements.map(elementJson),
      stmt: set.statements.length === 0 ? undefined : set.statements.map(templateJson),
    },
  }
}

/** The names behind `typeof` too. */
function keyTypeJson(type: DataType): Json {
  const names = namesOf(type)
  return names.length === 1 ? (names[0] ?? '') : names
}

function dataTypeJson(type: DataType): string {
  return type.kind === 'type' ? printDataType(type) : namesOf(type).join(' . ')
}

function namesOf(type: DataType): readonly string[] {
  return type.kind === 'type' ? type.names : typesOfData(type).map(({ name }) => name)
}

function flowtableJson({ name, handle, hook, priority, devices }: Flowtable, table: Table): JsonObject {
  const dev = devices.length > 1 ? devices : devices[0]
  return { flowtable: { family: table.family, name, table: table.name, handle, hook, prio: priority, dev } }
}

function chainJson({ name, handle, base }: Chain, table: Table): JsonObject {
  const head = { family: table.family, table: table.name, name, handle }
  if (base === undefined) return { chain: head }
  const { type, hook, priority, policy } = base
  return { chain: { ...head, type, hook, prio: priority, policy } }
}

function ruleJson({ handle, comment, statements }: Rule, chain: Chain, { family, name }: Table): JsonObject {
  const expr = statements.map((statement) => statementJson(statement, family))
  return { rule: { family, table: name, chain: chain.name, handle, comment, expr } }
}
