/** Listens with `xtables-monitor --trace`, as people do, and reads what it prints. */
import { spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KernelNode } from './kernel-node'
import { endWithUs, inside } from './namespace'
import { toolEnvironment } from './run-command'
import { settle, waitUntilListening } from './trace-socket'

/** The IPv4 identification, and each rule or policy as `nat KUBE-SERVICES jump KUBE-SVC-… ← -A KUBE-SERVICES …`. */
export type PrintedWalk = { readonly id: number; readonly lines: readonly string[] }

export type XtablesMonitor = { readonly read: () => readonly PrintedWalk[]; readonly close: () => void }

/** It prints rules as they are when it starts, so those must be there before. */
export function startXtablesMonitor(node: KernelNode): XtablesMonitor {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-monitor-'))
  const file = join(folder, 'events')
  const output = openSync(file, 'a')
  const [program = '', ...args] = inside(node.namespace, ['xtables-nft-multi', 'xtables-monitor', '--trace'])
  const child = spawn(program, args, { stdio: ['ignore', output, output], env: toolEnvironment })
  endWithUs(child)
  waitUntilListening(child)
  return {
    read: () => {
      settle(child, file)
      return parsePrinted(readFileSync(file, 'utf8'))
    },
    close: () => {
      child.kill('SIGKILL')
      closeSync(output)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/**
 *     PACKET: 2 a0824b77 IN=eth0 … SRC=203.0.113.5 DST=10.96.0.1 … ID=1 SPORT=5000 DPORT=53
 *      TRACE: 2 a0824b77 nat:PREROUTING:rule:0x7:JUMP:X  -4 -t nat -A PREROUTING -j X
 *      TRACE: 2 a0824b77 nat:X:rule:0x8:0xfffffffb  -4 -t nat -A X -p tcp -j RETURN
 *      TRACE: 2 a0824b77 nat:PREROUTING:policy:ACCEPT
 */
function parsePrinted(text: string): readonly PrintedWalk[] {
  const walks = new Map<string, { id: number; lines: string[] }>()
  for (const line of text.split('\n')) {
    const [, walk = '', rest = ''] = /^ ?(?:PACKET|TRACE): \d+ ([0-9a-f]+) (.*)$/.exec(line) ?? []
    const id = /^PACKET/.test(line) ? Number(/ ID=(\d+)/.exec(rest)?.[1] ?? 0) : undefined
    if (id !== undefined && !walks.has(walk)) walks.set(walk, { id, lines: [] })
    else if (id === undefined) walks.get(walk)?.lines.push(...parseStep(rest))
  }
  return [...walks.values()]
}

function parseStep(text: string): readonly string[] {
  const [, table, chain, kind, rest = ''] = /^([^:]+):([^:]+):(rule|policy|return):(.*)$/.exec(text) ?? []
  if (kind === 'policy') return [`${table} ${chain} policy ${rest.trim().toLowerCase()}`]
  const [, verdict = '', target, rule] = /^0x[0-9a-f]+:([^:\s]+)(?::(\S+))? {2}-[46] -t \S+ (.*)$/.exec(rest) ?? []
  if (kind !== 'rule' || rule === undefined) return []
  const name = verdict === returnVerdict ? 'return' : verdict.toLowerCase()
  return [`${table} ${chain} ${target === undefined ? name : `${name} ${target}`} ← ${rule}`]
}

/** NFT_RETURN, which iptables 1.8.9 has no word for. */
const returnVerdict = '0xfffffffb'
