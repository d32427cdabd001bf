/** What this kernel was built without: only that excuses a rule that it refuses, so that a fault of ours cannot pass for it. */
import { inside } from './namespace'
import { type CommandOutcome, runCommand } from './run-command'

type Construct = {
  readonly name: string
  /** Whether a script asks for it. */
  readonly word: RegExp
  /** What every kernel takes that has the construct, in a table of this family. */
  readonly probe: string
  readonly family?: 'ip'
}

const rule = (text: string, hook = 'prerouting'): string => `chain c {\ntype filter hook ${hook} priority 0\n${text}\n}`

/** Modules of nftables that kernels come without (net/netfilter/Kconfig, Linux 6.1). */
const constructs: readonly Construct[] = [
  { name: 'queue', word: /\bqueue (flags|to|num)\b/, probe: rule('queue num 1') },
  { name: 'synproxy', word: /\bsynproxy\b/, probe: rule('tcp dport 1 synproxy', 'input') },
  { name: 'tproxy', word: /\btproxy\b/, probe: rule('tcp dport 1 tproxy to :1') },
  { name: 'socket', word: /\bsocket \w/, probe: rule('socket transparent 1') },
  { name: 'osf', word: /\bosf\b/, probe: rule('osf name "Linux"') },
  { name: 'ipsec', word: /\bipsec (in|out)\b/, probe: rule('ipsec in reqid 1') },
  { name: 'fib', word: /\bfib\b/, probe: rule('fib daddr type local') },
  { name: 'numgen', word: /\bnumgen\b/, probe: rule('numgen inc mod 2 0') },
  { name: 'hash', word: /\b(jhash|symhash)\b/, probe: rule('symhash mod 2 0') },
  { name: 'dup', word: /\bdup to\b/, probe: rule('dup to 10.0.0.1'), family: 'ip' },
  { name: 'flow', word: /\bflowtable\b/, probe: 'flowtable f {\nhook ingress priority 0\ndevices = { lo }\n}' },
  { name: 'ct count', word: /\bct count\b/, probe: rule('ct count 1') },
  { name: 'quota', word: /\bquota\b/, probe: rule('quota 1 bytes') },
]

export type Lacks = (script: string) => readonly string[]

/** Of a namespace whose tables may be flushed: the constructs in a script that this kernel lacks, each asked for once. */
export function findLacks(namespace: string): Lacks {
  const known = new Map<string, CommandOutcome>()
  const isLacking = ({ name, probe, family }: Construct): boolean => {
    const script = `flush ruleset\ntable ${family ?? 'inet'} probe {\n${probe}\n}\n`
    const outcome = known.get(name) ?? runCommand(inside(namespace, ['nft', '-f', '-']), script)
    known.set(name, outcome)
    if (!outcome.ok && /syntax error/.test(outcome.message)) throw new Error(outcome.message)
    return !outcome.ok
  }
  return (script) => constructs.filter((one) => one.word.test(script) && isLacking(one)).map(({ name }) => name)
}
