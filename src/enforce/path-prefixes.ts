/** Networks that give a packet its path class, by the VPC of its interface: the setting as text, and what it says of an address. */
import { load, YAMLException } from 'js-yaml'
import type { Ip } from '#base/ip'
import { bitsOf, containsIp, type Prefix, parsePrefix, printPrefix } from '#base/prefix'
import { type PathClass, pathClasses } from '#compile/traffic-policy/entry'
import { readValue } from '#manifests/kinds/read-value'
import { type ListSchema, optional, type ValueOf } from '#model/api-schema'
import type { Problem } from '#model/traffic-policy'
import { cidrRule } from '#model/traffic-policy-schema'

export type PathPrefix = { readonly vpc: number; readonly prefix: Prefix; readonly path: PathClass }

/** Rows of the datapath's table. */
export const mostPrefixes = 16_384

const networks = {
  kind: 'list',
  item: { kind: 'text', minLength: 1, maxLength: 49, rules: [cidrRule] },
  maxItems: mostPrefixes,
  merge: 'set',
} as const

/** `unclassified` takes a part of a wider network out of its class. */
const schema = {
  kind: 'list',
  maxItems: mostPrefixes,
  merge: { keys: ['vpc'] },
  item: {
    kind: 'map',
    fields: {
      vpc: { kind: 'number', from: 1, to: 2 ** 32 - 1, description: 'As portolan agent attach --vpc names it.' },
      unclassified: optional(networks),
      Private: optional(networks),
      Internet: optional(networks),
      VIP: optional(networks),
      Service: optional(networks),
      Edge: optional(networks),
    },
  },
} as const satisfies ListSchema

type Vpcs = ValueOf<typeof schema>

export type PathPrefixReading =
  | { readonly kind: 'prefixes'; readonly prefixes: readonly PathPrefix[] }
  /** Nothing of a text that is wrong counts. */
  | { readonly kind: 'refused'; readonly problems: readonly Problem[] }

/** YAML or JSON: a list with an item a VPC, and in it the networks of each class. `[]` has none; an empty text is one that is being written. */
export function readPathPrefixes(text: string): PathPrefixReading {
  const isEmpty = text.split('\n').every((line) => /^\s*(#.*)?$/.test(line))
  if (isEmpty) return refuse([{ path: '', message: 'it is empty', hint: 'write [] where there are to be no networks' }])
  let value: unknown
  try {
    value = load(text)
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    const line = error.mark === undefined ? '' : `line ${error.mark.line + 1}`
    return refuse([{ path: line, message: `it is no YAML: ${error.reason}`, hint: 'mend that line' }])
  }
  const told: Problem[] = []
  const vpcs = readValue(schema, value, '', { told, isStrict: true }) as Vpcs | undefined
  if (told.length > 0 || vpcs === undefined) return refuse(told)
  const prefixes = vpcs.flatMap(prefixesOf)
  const problems = [...findRepeated(prefixes), ...findExcess(prefixes)]
  return problems.length > 0 ? refuse(problems) : { kind: 'prefixes', prefixes }
}

function refuse(problems: readonly Problem[]): PathPrefixReading {
  return { kind: 'refused', problems }
}

function prefixesOf(item: Vpcs[number]): readonly PathPrefix[] {
  return pathClasses.flatMap((path) =>
    (item[path] ?? []).flatMap((text) => {
      const prefix = parsePrefix(text)?.prefix
      return prefix === undefined ? [] : [{ vpc: item.vpc, prefix, path }]
    }),
  )
}

function findRepeated(prefixes: readonly PathPrefix[]): readonly Problem[] {
  const known = new Map<string, PathClass>()
  return prefixes.flatMap(({ vpc, prefix, path }) => {
    const name = `${printPrefix(prefix)} of VPC ${vpc}`
    const before = known.get(name)
    known.set(name, path)
    if (before === undefined) return []
    return [{ path, message: `${name} is ${before} already`, hint: 'name each network once' }]
  })
}

function findExcess({ length }: readonly PathPrefix[]): readonly Problem[] {
  if (length <= mostPrefixes) return []
  const message = `${length} networks are more than the ${mostPrefixes} that the datapath has room for`
  return [{ path: '', message, hint: 'join neighbouring networks' }]
}

/** The narrowest network of the VPC decides, as in the datapath; `remote` is the end that is not behind the interface. */
export function findPathPrefix(prefixes: readonly PathPrefix[], vpc: number, remote: Ip): PathPrefix | undefined {
  return prefixes
    .filter((one) => one.vpc === vpc && containsIp(one.prefix, remote))
    .reduce<PathPrefix | undefined>(
      (best, one) => (one.prefix.length > (best?.prefix.length ?? -1) ? one : best),
      undefined,
    )
}

/** By VPC, wider networks first: `10.0.0.0/8 Private`. */
export function printPathPrefixes(prefixes: readonly PathPrefix[]): string {
  const width = ({ prefix }: PathPrefix): number => prefix.length / bitsOf(prefix.ip.family)
  return [...prefixes]
    .sort((one, other) => width(one) - width(other))
    .map(({ prefix, path }) => `${printPrefix(prefix)} ${path}`)
    .join(', ')
}
