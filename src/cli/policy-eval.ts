/** `portolan policy eval`: may one connection pass, both directions apart, with every rule that bears on it. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { dump } from 'js-yaml'
import { Failure } from '#base/failure'
import type { PolicyProtocol } from '#compile/policy/policy-rule'
import { evaluate } from '#trace/policy/evaluate'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'
import { addObjectOptions, asNamespace } from './options'
import { answersJson, type RouteAnswer, summaryOf } from './policy-answers'
import { namespaceOfEnd, parseEnd } from './policy-parties'
import { routesBetween } from './policy-routes'
import { addPolicyWorldOptions, type PolicyWorldOptions, readPolicyWorld } from './policy-world'
import { printFindings } from './print-findings'
import { printAnswers } from './print-policy-answer'
import type { ObjectFlags } from './read-inputs-objects'

type EvalOptions = PolicyWorldOptions &
  ObjectFlags & {
    readonly source?: string
    readonly to?: string
    readonly port?: string
    readonly proto: PolicyProtocol
    readonly namespace?: string
    readonly output: 'text' | 'wide' | 'json' | 'yaml'
  }

export function addPolicyEval(policy: Command, { io, end }: CommandContext): void {
  const command = policy
    .command('eval')
    .description('say whether a connection may pass: each direction, the rules that decide, what would have to change')
  addPolicyWorldOptions(addObjectOptions(command))
    .option('--source <who>', 'NS/POD, NS/KIND/NAME, node/NAME, an address; an entity of Cilium')
    .option('--to <whom>', 'the same, or a Service as NS/svc/NAME')
    .option('--port <port>', 'the number or name of the port; of ICMP the type', asPort)
    .addOption(
      new Option('--proto <protocol>', 'tcp, udp, sctp, icmp or icmpv6').argParser(asProtocol).default('TCP', 'tcp'),
    )
    .option(
      '-n, --namespace <name>',
      'where a bare NAME is (default: the namespace of the context, else default)',
      asNamespace,
    )
    .addOption(new Option('-o, --output <format>', 'output').choices(['text', 'wide', 'json', 'yaml']).default('text'))
    .action(async (options: EvalOptions) => {
      end(await runEval(io, options))
    })
}

function asPort(text: string): string {
  const isNumber = /^\d+$/.test(text)
  if (isNumber && Number(text) <= 65535) return text
  if (!isNumber && /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(text)) return text
  throw new InvalidArgumentError(`"${text}" is neither a port from 0 to 65535 nor the name of one.`)
}

const protocols: Readonly<Record<string, PolicyProtocol>> = {
  tcp: 'TCP',
  udp: 'UDP',
  sctp: 'SCTP',
  icmp: 'ICMP',
  icmpv6: 'ICMPv6',
}

function asProtocol(text: string): PolicyProtocol {
  const protocol = Object.hasOwn(protocols, text.toLowerCase()) ? protocols[text.toLowerCase()] : undefined
  if (protocol !== undefined) return protocol
  throw new InvalidArgumentError(`"${text}" is none of ${Object.keys(protocols).join(', ')}.`)
}

async function runEval(io: Io, options: EvalOptions): Promise<ExitCode> {
  const { source, to, port, proto: protocol, semantics } = options
  if (source === undefined || to === undefined) {
    throw new Failure('usage.bad-argument', 'say who connects to whom: --source NS/POD --to NS/POD --port N')
  }
  const { world, cluster, slices, findings, ...read } = await readPolicyWorld(io, options, { command: 'policy eval' })
  const setting = { cluster, semantics, namespace: options.namespace ?? read.namespace }
  const from = parseEnd(source, { ...setting, flag: '--source', isTarget: false })
  const home = namespaceOfEnd(from)
  const { routes, notes } = routesBetween(
    { cluster, slices },
    {
      source: from,
      target: parseEnd(to, { ...setting, flag: '--to', isTarget: true, ...(home !== undefined && { home }) }),
      protocol,
      port,
    },
  )
  const answers = routes.map((route): RouteAnswer => ({ route, answer: evaluate(world, route.connection) }))
  printFindings(io, findings)
  if (options.output === 'json') io.out(`${JSON.stringify(answersJson(answers), undefined, 2)}\n`)
  else if (options.output === 'yaml') io.out(dump(answersJson(answers), { noRefs: true, lineWidth: 120 }))
  else io.out(printAnswers(answers, { notes, isWide: options.output === 'wide', hasColour: io.isTerminal }))
  return codes[String(summaryOf(answers).allowed)] ?? 4
}

const codes: Readonly<Record<string, ExitCode>> = { true: 0, false: 1, null: 3 }
