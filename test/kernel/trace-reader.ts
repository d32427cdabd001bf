/**
 * Listens to the kernel's own trace of a node's packets and reads it as walks.
 *
 * A table of its own marks every packet as it enters and looks at it once more at the end of each hook, after NAT. It is
 * an `inet` table, so that loading and saving iptables rules never touches it, and it sees the packets of both engines;
 * rule by rule, only the nft engine reports (a TRACE rule of the legacy engine goes to the kernel's log).
 *
 * `nft monitor trace` reads the events, not `xtables-monitor --trace`, which prints the same ones: iptables 1.8.9's
 * listens with the default buffer of 208 kB and ends at the first overflow ("cannot receive from nfnetlink socket: No
 * buffer space available"), after 80 of 500 packets sent at 2000 a second. nft asks for 16 MB: 500 packets sent at full
 * speed (20,000 a second, 22 events each) lose nothing. What either loses, the kernel counts for the socket, and a loss is
 * an error here.
 *
 * What the events look like:
 * - The id stays the same from PREROUTING or OUTPUT through POSTROUTING, over DNAT and masquerading. It changes where a
 *   packet turns back on `lo`: the second part is a walk of its own, with `inInterface: 'lo'`.
 * - Events of two packets may be interleaved: the answer that REJECT makes passes OUTPUT before the REJECT rule is
 *   reported.
 * - Only rules that match are reported. A jump into a chain without a match leaves no line at the chain's end; nor does
 *   the end of a chain entered by goto. A base chain's policy is reported when no rule decided, also after RETURN.
 * - DNAT, SNAT, MASQUERADE and REDIRECT report `accept`, REJECT reports `drop`, MARK, LOG, TRACE and rules without a
 *   target report `continue`, RETURN reports `return`.
 * - The packet of a `packet:` line is as its table got it; the mark is only on policy lines, and only when it is not 0.
 * - nat chains are seen by the first packet of a connection alone; a rejected one stays unconfirmed, and the next packet
 *   is a first one again.
 */
import { spawn } from 'node:child_process'
import { closeSync, ftruncateSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KernelNode } from './kernel-node'
import { endWithUs, inside } from './namespace'
import { readRuleBook } from './rule-book'
import { mustRun, toolEnvironment } from './run-command'
import { parseTraceEvent, splitTraceEvents } from './trace-event'
import { settle, waitUntilListening } from './trace-socket'
import { buildWalks, type Walk, watchTable } from './walk'

export type TraceReader = {
  /** The walks of all packets since the last `forget`, once the kernel and the monitor have nothing more to say. */
  readonly read: () => Walk[]
  readonly forget: () => void
  readonly close: () => void
}

/** Neighbour discovery and group reports are left out: the kernel sends them whenever it likes. */
const watchRules = `table inet ${watchTable} {
  chain first-prerouting {
    type filter hook prerouting priority -500
    icmpv6 type { 130-137, 143 } return
    ip protocol igmp return
    meta nftrace set 1
  }
  chain first-output {
    type filter hook output priority -500
    icmpv6 type { 130-137, 143 } return
    ip protocol igmp return
    meta nftrace set 1
  }
  chain last-prerouting { type filter hook prerouting priority 500; }
  chain last-input { type filter hook input priority 500; }
  chain last-forward { type filter hook forward priority 500; }
  chain last-output { type filter hook output priority 500; }
  chain last-postrouting { type filter hook postrouting priority 500; }
}
`

export function startTrace(node: KernelNode): TraceReader {
  mustRun(inside(node.namespace, ['nft', '-f', '-']), watchRules)
  const folder = mkdtempSync(join(tmpdir(), 'portolan-trace-'))
  const file = join(folder, 'events')
  const output = openSync(file, 'a')
  const [program = '', ...args] = inside(node.namespace, ['nft', '-n', '-a', 'monitor', 'trace'])
  const child = spawn(program, args, { stdio: ['ignore', output, output], env: toolEnvironment })
  endWithUs(child)
  const close = () => {
    child.kill('SIGKILL')
    closeSync(output)
    rmSync(folder, { recursive: true, force: true })
  }
  waitUntilListening(child)
  const read = (): Walk[] => {
    settle(child, file)
    const events = splitTraceEvents(readFileSync(file, 'utf8')).flatMap((text) => parseTraceEvent(text) ?? [])
    return buildWalks(events, readRuleBook(node))
  }
  const forget = () => {
    settle(child, file)
    ftruncateSync(output, 0)
  }
  return { read, forget, close }
}
