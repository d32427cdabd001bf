/** `portolan maps diff`: what a real node's maps hold, against what the objects imply. */
import { basename } from 'node:path'
import { type Command, Option } from 'commander'
import { Failure } from '#base/failure'
import { type Finding, printFinding, printOrigin, type Severity } from '#base/finding'
import { countOf, listOf } from '#base/text'
import { type DumpFile, parseDump } from '#compile/cilium/parse-dump'
import type { Cluster } from '#model/cluster'
import { listFolder } from '#sources/list-folder'
import { kindOfPath, readText } from '#sources/read-text'
import { diffMaps } from '#verify/cilium/diff-maps'
import { isStateDump } from '#verify/cilium/diff-state'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'
import { addMapsInputOptions, type MapsInputOptions, nodeOf } from './maps-options'
import { asText, collect } from './options'
import { printFindings } from './print-findings'
import { readClusterInput, requireNode } from './read-inputs'

type DiffOptions = MapsInputOptions & {
  readonly dump: readonly string[]
  readonly output: 'text' | 'json' | 'mermaid'
}

export function addMapsDiff(maps: Command, { io, end }: CommandContext): void {
  const command = maps
    .command('diff')
    .description('compare a node’s dumped maps with those that the objects imply; exit code 1 where they differ')
  addMapsInputOptions(command)
    .requiredOption(
      '--dump <path>',
      'a folder, such as a cilium sysdump, or a file: cilium-dbg bpf … list, service, endpoint, identity or ip list, with or without -o json, or bpftool map dump; may repeat',
      collect(asText),
    )
    .addOption(new Option('-o, --output <format>', 'output').choices(['text', 'json']).default('text'))
    .action(async () => {
      // Options that `maps` has as well are taken by it, wherever they stand.
      end(await runDiff(io, command.optsWithGlobals<DiffOptions>()))
    })
}

const rank: Readonly<Record<Severity, number>> = { error: 0, warning: 1, info: 2 }

async function runDiff(io: Io, options: DiffOptions): Promise<ExitCode> {
  if (options.output === 'mermaid')
    throw new Failure('usage.bad-argument', 'differences are not drawn; use -o text or -o json')
  const node = nodeOf(options)
  const input = await readClusterInput(io, options, { command: 'maps diff' })
  requireNode(input.cluster, node)
  const files = await readDumps(io, { dump: options.dump, node }, input.cluster)
  const states = files.filter(isStateDump)
  const dump = parseDump(files.filter((file) => !states.includes(file)))
  if (dump.maps.length + states.length === 0) {
    throw new Failure('input.unreadable', noMap(options.dump, files, dump.findings))
  }
  const { maps, findings, compared } = diffMaps(input.cluster, dump.maps, {
    node,
    slices: input.slices,
    states,
    cilium: { version: options.cilium },
    ...(options.device !== undefined && { devices: options.device }),
  })
  printFindings(io, [...input.findings, ...maps.findings, ...dump.findings])
  const isWhole = dump.maps.every(({ isCut, unread = 0 }) => !isCut && unread === 0)
  const sorted = [...findings].sort((a, b) => rank[a.severity] - rank[b.severity])
  io.out(
    options.output === 'json' ? `${JSON.stringify(sorted, undefined, 2)}\n` : printText(sorted, { compared, isWhole }),
  )
  return sorted.some(({ severity }) => severity !== 'info') ? 1 : 0
}

function noMap(paths: readonly string[], files: readonly DumpFile[], findings: readonly Finding[]): string {
  return `${paths.join(', ')} holds no map of Cilium's${whatThereIs(paths, files, findings)}; it should hold the output of cilium-dbg bpf … list, or of bpftool map dump in files named after their maps`
}

function whatThereIs(paths: readonly string[], files: readonly DumpFile[], findings: readonly Finding[]): string {
  const cut = findings.find(({ code }) => code === 'maps.dump-cut')?.origin
  if (cut !== undefined) return `: ${printOrigin(cut)} ends in the middle, before the first whole row`
  if (files.length === 0) return ': it is empty'
  const names = files.filter(({ file }) => !paths.includes(file)).map(({ file }) => basename(file))
  return names.length === 0 ? '' : ` in ${listOf(names, 3)}`
}

async function readDumps(
  io: Io,
  { dump, node }: { readonly dump: readonly string[]; readonly node: string },
  cluster: Cluster,
): Promise<readonly DumpFile[]> {
  const files: DumpFile[] = []
  for (const path of dump) {
    const isFolder = (await kindOfPath(path)) === 'folder'
    const listed = isFolder ? await listFolder(path) : { files: [path], ignored: [] }
    for (const file of [...listed.files, ...listed.ignored].sort()) {
      if (isFolder && !isOfNode(file, node, cluster)) continue
      const text = await readDump(io, file, isFolder)
      if (text !== undefined) files.push({ file, text, isPart: isFolder })
    }
  }
  return files
}

/** A sysdump holds a folder for the agent of each node, named after its pod. */
function isOfNode(file: string, node: string, { pods }: Cluster): boolean {
  const folder = /cilium-bugtool-(cilium-[a-z0-9]+)/.exec(file)?.[1]
  const pod = [...pods.values()].find(({ meta }) => meta.name === folder)
  return pod?.nodeName === undefined || pod.nodeName === node
}

/** A sysdump holds much that is no dump of a map, and some that is no text. */
async function readDump(io: Io, file: string, isFolder: boolean): Promise<string | undefined> {
  try {
    return await readText(file, { stdin: io.stdin, say: (sentence) => io.err(`${sentence}\n`) })
  } catch (error) {
    if (isFolder && error instanceof Failure) return undefined
    throw error
  }
}

type Compared = { readonly compared: number; readonly isWhole: boolean }

function printText(findings: readonly Finding[], { compared, isWhole }: Compared): string {
  const how = isWhole ? '' : ' as far as they can be read'
  const what = findings.length === 0 ? 'all as the objects imply' : countOf(findings.length, 'difference')
  const summary = `${countOf(compared, 'map')} of the dump compared${how}: ${what}\n`
  return `${findings.map((finding) => `${printFinding(finding)}\n`).join('')}${summary}`
}
