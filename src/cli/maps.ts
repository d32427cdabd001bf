/** `portolan maps`: the BPF maps that Cilium keeps on a node for these objects. */
import { type Command, Option } from 'commander'
import { Failure } from '#base/failure'
import { printIp } from '#base/ip'
import { printPrefix } from '#base/prefix'
import { countOf, listOf } from '#base/text'
import type { MapType } from '#compile/bpf/map-shape'
import { dumpMaps } from '#compile/cilium/dump-maps'
import type { DumpedMap } from '#compile/cilium/dumped-map'
import { drawMaps, explainedRows, explainMap } from '#compile/cilium/explain-maps'
import { type NodeMaps, nodeMaps } from '#compile/cilium/node-maps'
import { mapJson, mapRawJson, printColumns, printMapRaw, printMapText } from '#compile/cilium/print-maps'
import { loadMaps } from '#kernel/cilium-maps'
import type { CommandContext } from './command'
import type { Io } from './io'
import { addMapsDiff } from './maps-diff'
import { addMapsInputOptions, type MapsInputOptions, nodeOf } from './maps-options'
import { printFindings } from './print-findings'
import { readClusterInput, requireNode } from './read-inputs'
import { requireFolder } from './require-folder'

type MapsOptions = MapsInputOptions & {
  readonly explain?: boolean
  readonly raw?: boolean
  readonly load?: string
  readonly output: 'text' | 'json' | 'mermaid'
}

export function addMaps(program: Command, context: CommandContext): void {
  const { io, end } = context
  const command = program
    .command('maps')
    .description('print the BPF maps that Cilium keeps on a node, as cilium-dbg bpf … list does')
    .argument('[MAP]', 'a map by its name or the beginning of it (lxc, ipcache, policy, lb4, egress …), or routes')
  addMapsInputOptions(command)
    .option('--explain', 'each row with the object and field it comes from, and who writes it')
    .option('--raw', 'keys and values as bytes')
    .option('--load <dir>', 'create the maps in a bpffs at this folder (root), and read them back')
    .addOption(new Option('-o, --output <format>', 'output').choices(['text', 'json', 'mermaid']).default('text'))
    .action(async (name: string | undefined, options: MapsOptions) => {
      await runMaps(io, name, options)
      end(0)
    })
  addMapsDiff(command, context)
}

async function runMaps(io: Io, name: string | undefined, options: MapsOptions): Promise<void> {
  checkMapsOptions(options)
  const node = nodeOf(options)
  const input = await readClusterInput(io, options, { command: 'maps' })
  requireNode(input.cluster, node)
  const maps = nodeMaps(input.cluster, {
    node,
    slices: input.slices,
    cilium: { version: options.cilium },
    ...(options.device !== undefined && { devices: options.device }),
  })
  printFindings(io, [...input.findings, ...maps.findings])
  if (name === 'routes') {
    io.out(options.output === 'json' ? `${JSON.stringify(routesJson(maps), undefined, 2)}\n` : printRoutes(maps))
    return
  }
  const chosen = chooseMaps(dumpMaps(maps), name)
  if (options.load !== undefined) {
    requireFolder(options.load, '--load')
    io.out(printLoaded(loadMaps(options.load, chosen)))
  } else io.out(printMaps(chosen, { ...options, hasHeads: name === undefined || chosen.length > 1, maps }))
}

function checkMapsOptions({ explain, raw, load, output }: MapsOptions): void {
  const clash = (one: string, other: string): never => {
    throw new Failure('usage.bad-argument', `${one} and ${other} ask for different outputs; name one of them`)
  }
  if (explain === true && raw === true) clash('--explain', '--raw')
  if (output === 'mermaid' && raw === true) clash('--raw', '-o mermaid')
  if (load !== undefined && (explain === true || raw === true || output !== 'text')) {
    clash('--load', explain === true ? '--explain' : raw === true ? '--raw' : `-o ${output}`)
  }
}

/** By the whole name, by how it begins with or without `cilium_`, or else by a part of it. */
function chooseMaps(all: readonly DumpedMap[], asked: string | undefined): readonly DumpedMap[] {
  if (asked === undefined) return all
  const name = asked.toLowerCase()
  const tests: readonly ((own: string) => boolean)[] = [
    (own) => own === name || own === `cilium_${name}`,
    (own) => own.startsWith(`cilium_${name}_`),
    (own) => own.startsWith(name) || own.startsWith(`cilium_${name}`),
    (own) => own.includes(name),
  ]
  for (const test of tests) {
    const found = all.filter(({ layout }) => test(layout.name))
    if (found.length > 0) return found
  }
  const names = [...all.map(({ layout }) => layout.name), 'routes']
  throw new Failure('usage.not-found', `no map of this node is named "${asked}": it has ${listOf(names, 60)}`)
}

type PrintOptions = MapsOptions & { readonly hasHeads: boolean; readonly maps: NodeMaps }

function printMaps(chosen: readonly DumpedMap[], options: PrintOptions): string {
  if (options.output === 'mermaid') return drawMaps(chosen)
  if (options.output === 'json') return `${JSON.stringify(jsonOf(chosen, options), undefined, 2)}\n`
  const print = options.raw === true ? printMapRaw : options.explain === true ? explainMap : printMapText
  if (!options.hasHeads) return chosen.map(print).join('')
  const filled = chosen.filter(({ rows }) => rows.length > 0)
  const empty = chosen.filter(({ rows }) => rows.length === 0)
  const sections = filled.map((map) => `${headOf(map)}\n${print(map)}`)
  const routes = chosen.some(({ layout }) => layout.name === 'cilium_lxc')
    ? [`# routes: to pods of every node\n${printRoutes(options.maps)}`]
    : []
  const rest =
    empty.length === 0
      ? []
      : [
          `# empty\n${printColumns(empty.map(({ layout }) => [layout.name, kinds[layout.type], `${layout.keySize} → ${layout.valueSize} B`, `at most ${layout.maxEntries}`, layout.by === 'datapath' ? `traffic fills it: ${layout.holds}` : layout.holds]))}`,
        ]
  return [...sections, ...routes, ...rest].join('\n')
}

/** As bpftool names them. */
const kinds: Readonly<Record<MapType, string>> = {
  hash: 'hash',
  array: 'array',
  programArray: 'prog_array',
  perCpuHash: 'percpu_hash',
  perCpuArray: 'percpu_array',
  lruHash: 'lru_hash',
  lruPerCpuHash: 'lru_percpu_hash',
  prefixTrie: 'lpm_trie',
  arrayOfMaps: 'array_of_maps',
  hashOfMaps: 'hash_of_maps',
  ringBuffer: 'ringbuf',
}

function headOf({ layout, rows }: DumpedMap): string {
  const { name, holds, type, keySize, valueSize, maxEntries, command } = layout
  const shape = `${kinds[type]}, ${keySize} → ${valueSize} B, ${countOf(rows.length, 'row')} of at most ${maxEntries}`
  return `# ${name}: ${holds} (${shape}${command === undefined ? '' : `; ${command}`})`
}

function jsonOf(chosen: readonly DumpedMap[], { explain, raw, hasHeads }: PrintOptions): unknown {
  if (explain === true) return chosen.flatMap(explainedRows)
  const print = raw === true ? mapRawJson : mapJson
  const [first] = chosen
  if (!hasHeads && first !== undefined) return print(first)
  return Object.fromEntries(chosen.map((map) => [map.layout.name, print(map)]))
}

function routesJson({ routes }: NodeMaps): unknown {
  return routes.map(({ destination, via, device }) => ({
    destination: printPrefix(destination),
    ...(via !== undefined && { via: printIp(via) }),
    ...(device !== undefined && { device }),
  }))
}

/** As `ip route` prints them. */
function printRoutes({ routes }: NodeMaps): string {
  if (routes.length === 0) return 'No routes of Cilium’s own: the network routes between nodes.\n'
  return routes
    .map(({ destination, via, device }) =>
      [
        printPrefix(destination),
        via === undefined ? '' : ` via ${printIp(via)}`,
        device === undefined ? '' : ` dev ${device}`,
        '\n',
      ].join(''),
    )
    .join('')
}

function printLoaded(loaded: ReturnType<typeof loadMaps>): string {
  const lines = loaded.map(({ path, rows }) => [path, `${countOf(rows, 'row')} written and read back`])
  return printColumns(lines)
}
