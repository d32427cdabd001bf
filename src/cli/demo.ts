/** `portolan demo`: a guided tour over the sample cluster that comes with Portolan. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { type Captured, capture } from './capture'
import type { CommandContext } from './command'
import { clusterCidr, type Stop, tour } from './demo-tour'
import type { Io } from './io'
import { sampleFolder } from './sample-folder'

export function addDemo(program: Command, { io, end, runOn }: CommandContext): void {
  program
    .command('demo')
    .description('a guided tour over a bundled sample cluster')
    .action(async () => {
      const sample = sampleFolder()
      const folder = mkdtempSync(join(tmpdir(), 'portolan-demo-'))
      const rules = join(folder, 'node-b.save')
      const run = (command: string): Promise<Captured> =>
        capture(io, (captured) => runOn(captured, wordsOf(command, sample, rules)))
      try {
        const made = await run(`iptables --from SAMPLE --node node-b --cluster-cidr ${clusterCidr}`)
        writeFileSync(rules, made.out)
        io.out(
          `${heading(io, 'PORTOLAN, A GUIDED TOUR')}\n\nThe cluster in ${sample} has two nodes, a shop, and a few things that go wrong.\n`,
        )
        for (const [index, stop] of tour.entries()) await showStop(io, run, { stop, number: index + 1, sample })
        io.out(closing(io))
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
      end(0)
    })
}

function wordsOf(command: string, sample: string, rules: string): readonly string[] {
  return command.split(' ').map((word) => (word === 'SAMPLE' ? sample : word === 'RULES' ? rules : word))
}

type Shown = { readonly stop: Stop; readonly number: number; readonly sample: string }

async function showStop(io: Io, run: (command: string) => Promise<Captured>, shown: Shown): Promise<void> {
  const { stop, number, sample } = shown
  const typed = stop.command.replace('SAMPLE', sample).replace('RULES', 'node-b.save')
  const { out, err, code } = await run(stop.command)
  const lines = out.trimEnd().split('\n')
  const kept = stop.only === undefined ? lines : lines.filter((line) => stop.only?.test(line))
  io.out(`\n${heading(io, `${number}. ${stop.title}`)}\n${stop.tale}\n\n$ portolan ${typed}\n\n`)
  io.out(`${kept.map((line) => `    ${line}`.trimEnd()).join('\n')}\n`)
  if (kept.length < lines.length) io.out(`    … ${lines.length - kept.length} other lines\n`)
  if (stop.command.startsWith('trace') && err !== '') io.out(`${err.replaceAll(/^/gm, '    ').trimEnd()}\n`)
  if (code !== 0) io.out(`    (exit code ${code}: answered, and the answer is bad news)\n`)
}

function closing(io: Io): string {
  return `\n${heading(io, 'Now yours')}\n
  kubectl get services,pods,endpointslices,nodes -A -o json > cluster.json
  portolan endpoints --from cluster.json
  portolan iptables  --from cluster.json --node NODE --cluster-cidr CIDR
  portolan trace     --ruleset node.save --all       (node.save is iptables-save of a node)
`
}

function heading(io: Io, text: string): string {
  return io.isTerminal ? `\u001b[1m${text}\u001b[0m` : text
}
