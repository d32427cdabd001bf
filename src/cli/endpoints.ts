/** `portolan endpoints`: EndpointSlices as the controllers would write them, as the input holds them, or the difference. */
import { type Command, Option } from 'commander'
import { dump } from 'js-yaml'
import { Failure } from '#base/failure'
import { compareText, listOf, printTable } from '#base/text'
import { diffSlices, type SliceDifference } from '#compile/endpointslices/diff-slices'
import { printEndpointSlice } from '#compile/endpointslices/print-endpoint-slice'
import { selectSlices } from '#compile/endpointslices/select-slices'
import type { Cluster } from '#model/cluster'
import { type Endpoint, type EndpointSlice, serviceNameLabel } from '#model/endpoint-slice'
import type { Service } from '#model/service'
import type { CommandContext } from './command'
import type { Io } from './io'
import { addObjectOptions } from './options'
import { printFindings } from './print-findings'
import { readClusterInput } from './read-inputs'
import type { ObjectFlags } from './read-inputs-objects'
import { qualify, requireService } from './service-name'

type EndpointsOptions = ObjectFlags & {
  readonly slices: 'computed' | 'input' | 'diff'
  readonly output: 'text' | 'wide' | 'json' | 'yaml' | 'name'
  readonly namespace?: string
  readonly allNamespaces?: boolean
  readonly headers: boolean
}

export function addEndpoints(program: Command, { io, end }: CommandContext): void {
  const command = program
    .command('endpoints')
    .description('print EndpointSlices: computed from Services and pods, those of the input, or what differs')
    .argument('[NS/NAME...]', 'Services; svc/NAME and NAME are of the namespace of -n; all when left out')
  addObjectOptions(command)
    .addOption(
      new Option('--slices <which>', 'which slices').choices(['computed', 'input', 'diff']).default('computed'),
    )
    .addOption(
      new Option('-o, --output <format>', 'output').choices(['text', 'wide', 'json', 'yaml', 'name']).default('text'),
    )
    .option(
      '-n, --namespace <name>',
      'the namespace of each NAME without one (default: that of the context, else default); alone, all of it',
    )
    .option('-A, --all-namespaces', 'Services of every namespace, as without -n')
    .option('--no-headers', 'the table without its first line')
    .action(async (names: readonly string[], options: EndpointsOptions) => {
      await runEndpoints(io, names, options)
      end(0)
    })
}

async function runEndpoints(io: Io, names: readonly string[], options: EndpointsOptions): Promise<void> {
  checkOptions(names, options)
  const mode = options.slices === 'input' ? 'input' : 'computed'
  const keysIn = (usual: string): readonly string[] => names.map((name) => qualify(name, options.namespace ?? usual))
  const input = await readClusterInput(
    io,
    { ...options, slices: mode },
    { command: 'endpoints', onlyNamespace: (usual) => onlyNamespace(keysIn(usual), options.namespace) },
  )
  const keys = keysIn(input.namespace)
  for (const key of keys) requireService(input.cluster, key)
  printFindings(io, input.findings)
  const isAsked = (slice: EndpointSlice): boolean => isOf(slice, keys, options.namespace)
  if (options.slices === 'diff') {
    const found = selectSlices(input.cluster, 'input').value.filter(isAsked)
    printDiff(io, diffSlices(input.slices.filter(isAsked), found), options)
    return
  }
  const slices = input.slices.filter(isAsked)
  const why = slices.length > 0 ? '' : whyNone(input.cluster, { keys, namespace: options.namespace, mode })
  printSlices(io, { slices, why }, options)
}

/** Of Services that are asked for by name; alone, `-n` is all of it. */
function onlyNamespace(keys: readonly string[], asked: string | undefined): string | undefined {
  if (keys.length === 0) return asked
  const [first, ...others] = new Set(keys.map((key) => key.split('/')[0] ?? ''))
  return others.length === 0 ? first : undefined
}

function checkOptions(names: readonly string[], options: EndpointsOptions): void {
  const usage = (sentence: string): Failure => new Failure('usage.bad-argument', sentence)
  if (options.allNamespaces === true && options.namespace !== undefined) {
    throw usage('-A is every namespace and -n one of them; leave one out')
  }
  const bare = names.find((name) => !name.replace(/^(?:svc|services?)\//, '').includes('/'))
  if (options.allNamespaces === true && bare !== undefined) {
    throw usage(`${bare} is of one namespace, and -A asks for all; write NAMESPACE/NAME, or leave -A out`)
  }
  if (options.slices === 'diff' && options.output === 'name') {
    throw usage('-o name prints slices, and --slices diff differences; leave one out')
  }
}

function isOf({ meta }: EndpointSlice, keys: readonly string[], namespace: string | undefined): boolean {
  if (keys.length > 0) return keys.includes(`${meta.namespace}/${meta.labels[serviceNameLabel]}`)
  return namespace === undefined || meta.namespace === namespace
}

type Asked = {
  readonly keys: readonly string[]
  readonly namespace: string | undefined
  readonly mode: 'computed' | 'input'
}

/** A sentence for an empty table. */
function whyNone(cluster: Cluster, { keys, namespace, mode }: Asked): string {
  const asked = [...cluster.services].filter(([key]) => (keys.length > 0 ? keys.includes(key) : isIn(key, namespace)))
  if (asked.length === 0 && namespace !== undefined) {
    const names = [...new Set([...cluster.services.keys()].map((key) => key.split('/')[0] ?? ''))].sort(compareText)
    const others = names.length === 0 ? 'the input has no Service' : `Services are in ${listOf(names)}`
    return `no Service is in namespace ${namespace}: ${others}`
  }
  if (asked.length === 0) return 'the input has no Service'
  if (mode === 'input') return 'the input holds none of these Services; leave --slices out to compute them'
  return asked.map(([key, service]) => `${key} ${whyOf(service)}`).join('; ')
}

function isIn(key: string, namespace: string | undefined): boolean {
  return namespace === undefined || key.startsWith(`${namespace}/`)
}

function whyOf({ type, externalName, selector }: Service): string {
  if (type === 'ExternalName') return `is of type ExternalName: DNS answers with the name ${externalName}`
  if (selector === undefined) return 'has no selector: its slices are written by hand, and the input holds none'
  return 'selects no pod of the input'
}

type Shown = { readonly slices: readonly EndpointSlice[]; readonly why: string }

function printSlices(io: Io, { slices, why }: Shown, { output, headers }: EndpointsOptions): void {
  const list = { apiVersion: 'v1', kind: 'List', items: slices.map(sliceObject) }
  if (output === 'json') io.out(`${JSON.stringify(list, undefined, 2)}\n`)
  else if (output === 'yaml') io.out(dump(list))
  else if (output === 'name') {
    for (const { meta } of slices) io.out(`endpointslice.discovery.k8s.io/${meta.name}\n`)
  } else if (slices.length === 0) io.out(`No EndpointSlices: ${why}.\n`)
  else io.out(withHeader(sliceTable(slices, output === 'wide'), headers))
}

function withHeader(table: string, isShown: boolean): string {
  return isShown ? table : table.slice(table.indexOf('\n') + 1)
}

/** The API object; what was assumed stands in an annotation of our own. */
function sliceObject(slice: EndpointSlice): object {
  const { assumed, annotations } = slice.meta
  if (assumed.length === 0) return printEndpointSlice(slice)
  const marked = { ...annotations, 'portolan.dev/assumed': assumed.join(',') }
  return printEndpointSlice({ ...slice, meta: { ...slice.meta, annotations: marked } })
}

function sliceTable(slices: readonly EndpointSlice[], isWide: boolean): string {
  const header = ['SERVICE', 'SLICE', 'ADDRESS', 'PORTS', 'READY', 'TARGET', 'NODE']
  const more = ['SERVING', 'TERMINATING', 'ZONE', 'HOSTNAME', 'HINTS']
  const sorted = [...slices].sort((a, b) => compareText(serviceOf(a), serviceOf(b)))
  const rows = sorted.flatMap((slice) => sliceRows(slice, isWide))
  const hasAssumed = slices.some((slice) => slice.meta.assumed.length > 0)
  return printTable([...header, ...(isWide ? more : []), ...(hasAssumed ? ['ASSUMED'] : [])], rows)
}

function sliceRows(slice: EndpointSlice, isWide: boolean): readonly (readonly string[])[] {
  const start = [serviceOf(slice), slice.meta.name]
  const ports =
    slice.ports.map((port) => `${port.name ? `${port.name}:` : ''}${port.port ?? '*'}/${port.protocol}`).join(',') ||
    '<none>'
  if (slice.endpoints.length === 0) {
    return [
      [...start, '<none>', ports, '', '', '', ...(isWide ? ['', '', '', '', ''] : []), assumedIn(slice, undefined)],
    ]
  }
  return slice.endpoints.map((endpoint, index) => {
    const { conditions, targetRef } = endpoint
    const target = targetRef === undefined ? '<none>' : `${targetRef.kind.toLowerCase()}/${targetRef.name}`
    const cells = [
      ...start,
      endpoint.addresses.join(','),
      ports,
      flag(conditions.ready),
      target,
      endpoint.nodeName ?? '<none>',
    ]
    const wide = [
      flag(conditions.serving),
      flag(conditions.terminating),
      endpoint.zone ?? '<none>',
      endpoint.hostname ?? '<none>',
      hintsOf(endpoint),
    ]
    return [...cells, ...(isWide ? wide : []), assumedIn(slice, index)]
  })
}

function serviceOf({ meta }: EndpointSlice): string {
  return `${meta.namespace}/${meta.labels[serviceNameLabel] ?? '<none>'}`
}

function flag(value: boolean | undefined): string {
  return value === undefined ? '<unset>' : String(value)
}

function hintsOf({ forZones, forNodes }: Endpoint): string {
  const parts = [...(forZones ?? []).map((zone) => `zone ${zone}`), ...(forNodes ?? []).map((node) => `node ${node}`)]
  return parts.length === 0 ? '<none>' : parts.join(', ')
}

/** The assumed fields of one endpoint, or of the slice where it has none. */
function assumedIn(slice: EndpointSlice, index: number | undefined): string {
  const fields = slice.meta.assumed.flatMap((path) => {
    const match = /^endpoints\[(\*|\d+)\]\.?(.*)$/.exec(path)
    if (match === null) return [path]
    return match[1] === '*' || match[1] === String(index) ? [match[2] === '' ? 'whole endpoint' : String(match[2])] : []
  })
  return [...new Set(fields)].join(', ')
}

function printDiff(io: Io, differences: readonly SliceDifference[], { output, headers }: EndpointsOptions): void {
  if (output === 'json') io.out(`${JSON.stringify(differences, undefined, 2)}\n`)
  else if (output === 'yaml') io.out(dump(differences))
  else if (differences.length === 0) io.out('The slices of the input are what the controllers would write.\n')
  else {
    const table = printTable(['SERVICE', 'ADDRESS', 'SLICE', 'DIFFERENCE'], differences.map(diffRow))
    io.out(withHeader(table, headers))
  }
}

function diffRow(difference: SliceDifference): readonly string[] {
  const { service, address, slice } = difference
  return [`${service.namespace}/${service.name}`, address, slice, sentenceOf(difference)]
}

function sentenceOf(difference: SliceDifference): string {
  switch (difference.kind) {
    case 'missing':
      return `missing in the input (ports ${difference.ports})`
    case 'extra':
      return `only in the input (ports ${difference.ports})`
    case 'changed':
      return `${difference.field} is ${difference.input} in the input, computed ${difference.computed}`
    default:
      return difference satisfies never
  }
}
