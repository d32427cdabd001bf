/** `portolan endpoints`: EndpointSlices as the controllers would write them, as the input holds them, or the difference. */
import { type Command, Option } from 'commander'
import { dump } from 'js-yaml'
import { compareText, printTable } from '#base/text'
import { diffSlices, type SliceDifference } from '#compile/endpointslices/diff-slices'
import { printEndpointSlice } from '#compile/endpointslices/print-endpoint-slice'
import { selectSlices } from '#compile/endpointslices/select-slices'
import { type Endpoint, type EndpointSlice, serviceNameLabel } from '#model/endpoint-slice'
import type { CommandContext } from './command'
import type { Io } from './io'
import { addFromOption } from './options'
import { printFindings } from './print-findings'
import { readClusterInput } from './read-inputs'
import { qualify, requireService } from './service-name'

type EndpointsOptions = {
  readonly from?: readonly string[]
  readonly slices: 'computed' | 'input' | 'diff'
  readonly output: 'text' | 'wide' | 'json' | 'yaml'
  readonly namespace?: string
}

export function addEndpoints(program: Command, { io, end }: CommandContext): void {
  const command = program
    .command('endpoints')
    .description('print EndpointSlices: computed from Services and pods, those of the input, or what differs')
    .argument('[NS/NAME]', 'one Service; all when left out')
  addFromOption(command)
    .addOption(
      new Option('--slices <which>', 'which slices').choices(['computed', 'input', 'diff']).default('computed'),
    )
    .addOption(new Option('-o, --output <format>', 'output').choices(['text', 'wide', 'json', 'yaml']).default('text'))
    .option('-n, --namespace <name>', 'only Services of this namespace, and where a bare NAME is')
    .action(async (name: string | undefined, options: EndpointsOptions) => {
      await runEndpoints(io, name, options)
      end(0)
    })
}

async function runEndpoints(io: Io, name: string | undefined, options: EndpointsOptions): Promise<void> {
  const mode = options.slices === 'input' ? 'input' : 'computed'
  const input = await readClusterInput(io, {
    ...(options.from === undefined ? {} : { from: options.from }),
    slices: mode,
  })
  const key = name === undefined ? undefined : qualify(name, options.namespace)
  if (key !== undefined) requireService(input.cluster, key)
  printFindings(io, input.findings)
  const isAsked = (slice: EndpointSlice): boolean => isOf(slice, key, options.namespace)
  if (options.slices === 'diff') {
    const found = selectSlices(input.cluster, 'input').value.filter(isAsked)
    printDiff(io, diffSlices(input.slices.filter(isAsked), found), options.output)
    return
  }
  printSlices(io, input.slices.filter(isAsked), options.output)
}

function isOf({ meta }: EndpointSlice, key: string | undefined, namespace: string | undefined): boolean {
  if (key !== undefined) return `${meta.namespace}/${meta.labels[serviceNameLabel]}` === key
  return namespace === undefined || meta.namespace === namespace
}

function printSlices(io: Io, slices: readonly EndpointSlice[], output: EndpointsOptions['output']): void {
  const list = { apiVersion: 'v1', kind: 'List', items: slices.map(sliceObject) }
  if (output === 'json') io.out(`${JSON.stringify(list, undefined, 2)}\n`)
  else if (output === 'yaml') io.out(dump(list))
  else io.out(sliceTable(slices, output === 'wide'))
}

/** The API object; what was assumed stands in an annotation of our own. */
function sliceObject(slice: EndpointSlice): object {
  const { assumed, annotations } = slice.meta
  if (assumed.length === 0) return printEndpointSlice(slice)
  const marked = { ...annotations, 'portolan.dev/assumed': assumed.join(',') }
  return printEndpointSlice({ ...slice, meta: { ...slice.meta, annotations: marked } })
}

function sliceTable(slices: readonly EndpointSlice[], isWide: boolean): string {
  if (slices.length === 0) return 'No EndpointSlices.\n'
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

function printDiff(io: Io, differences: readonly SliceDifference[], output: EndpointsOptions['output']): void {
  if (output === 'json') io.out(`${JSON.stringify(differences, undefined, 2)}\n`)
  else if (output === 'yaml') io.out(dump(differences))
  else if (differences.length === 0) io.out('The slices of the input are what the controllers would write.\n')
  else io.out(printTable(['SERVICE', 'ADDRESS', 'SLICE', 'DIFFERENCE'], differences.map(diffRow)))
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
