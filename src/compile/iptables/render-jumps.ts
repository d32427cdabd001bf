/** What stands outside a sync: the jumps from built-in chains, and the canary chains that tell of a flush. */

import type { RestoreChain, RestoreLine, RestoreTable } from './restore-table'
import { builtinChains, type Clause } from './rule'
import { comment, jump, match, option, rule } from './rule-parts'

type Jump = {
  readonly table: 'filter' | 'nat'
  readonly from: string
  readonly to: string
  readonly clauses: readonly Clause[]
}

const isNew = match('conntrack', option('--ctstate', 'NEW'))

/**
 * In the order of pkg/proxy/iptables/proxier.go (1.34): each is put in front of the chain, so the last stands first. The
 * two of KUBE-FIREWALL are the kubelet's as well; they are there in both families, even when the chain is empty.
 */
const jumps: readonly Jump[] = [
  ...['INPUT', 'FORWARD'].map((from) =>
    filterJump(from, 'KUBE-EXTERNAL-SERVICES', [isNew, comment('kubernetes externally-visible service portals')]),
  ),
  filterJump('INPUT', 'KUBE-NODEPORTS', [comment('kubernetes health check service ports')]),
  ...['FORWARD', 'OUTPUT'].map((from) =>
    filterJump(from, 'KUBE-SERVICES', [isNew, comment('kubernetes service portals')]),
  ),
  filterJump('FORWARD', 'KUBE-FORWARD', [comment('kubernetes forwarding rules')]),
  ...['INPUT', 'OUTPUT', 'FORWARD'].map((from) =>
    filterJump(from, 'KUBE-PROXY-FIREWALL', [isNew, comment('kubernetes load balancer firewall')]),
  ),
  ...['OUTPUT', 'PREROUTING'].map((from): Jump => natJump(from, 'KUBE-SERVICES', 'kubernetes service portals')),
  natJump('POSTROUTING', 'KUBE-POSTROUTING', 'kubernetes postrouting rules'),
  filterJump('INPUT', 'KUBE-FIREWALL', []),
  filterJump('OUTPUT', 'KUBE-FIREWALL', []),
]

function filterJump(from: string, to: string, clauses: readonly Clause[]): Jump {
  return { table: 'filter', from, to, clauses }
}

function natJump(from: string, to: string, text: string): Jump {
  return { table: 'nat', from, to, clauses: [comment(text)] }
}

const canary = 'KUBE-PROXY-CANARY'

/** The tables of a sync with built-in chains, jumps and canaries, so that an empty namespace can load them; mangle last. */
export function withBuiltins(sync: readonly RestoreTable[]): readonly RestoreTable[] {
  const empty: RestoreTable = { name: 'mangle', chains: [], lines: [] }
  return [...sync, empty].map(withJumps)
}

function withJumps({ name, chains, lines }: RestoreTable): RestoreTable {
  const own = jumps.filter(({ table }) => table === name)
  const builtins = builtinChains[name] ?? []
  const known = new Set(chains.map((chain) => chain.name))
  const missing = new Set([...own.map(({ to }) => to).filter((to) => !known.has(to)), canary])
  const fromBuiltins = builtins.flatMap((from) =>
    own
      .filter((candidate) => candidate.from === from)
      .toReversed()
      .map(({ to, clauses }): RestoreLine => ({ kind: 'append', chain: from, rules: [rule(clauses, jump(to))] })),
  )
  return {
    name,
    chains: [...builtins.map(builtinChain), ...chains, ...Array.from(missing, (chain) => ({ name: chain }))],
    lines: [...fromBuiltins, ...lines],
  }
}

function builtinChain(name: string): RestoreChain {
  return { name, policy: 'ACCEPT' }
}
