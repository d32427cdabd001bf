/** `portolan who IP`: who had an address at a time, and why that is known. */
import { type Command, Option } from 'commander'
import { Failure } from '#base/failure'
import { canonicalIp, explainBadIp } from '#base/ip'
import { plainText, printTable } from '#base/text'
import { canonicalAddress } from '#flows/address'
import { parseTimeOrAge } from '#wire/flow-query'
import type { AddressAnswer, OwnershipRecord } from '#wire/owner-record'
import { addBrokerOptions, type BrokerClient, type BrokerFlags, openClient } from './broker-client'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'

type WhoFlags = BrokerFlags & { readonly at?: string; readonly output: 'text' | 'wide' | 'json' }

export function addWho(program: Command, { io, end }: CommandContext): void {
  const command = program
    .command('who')
    .description('who had an address at a time: the pod, node or Service, since when, and why that is known')
    .argument('<IP>', 'the address')
    .option('--at <time>', '2026-07-23T10:00:00Z, any offset, or an age such as 15m (default: now)')
  addBrokerOptions(command)
    .addOption(
      new Option('-o, --output <format>', 'wide adds everybody who had it')
        .choices(['text', 'wide', 'json'])
        .default('text'),
    )
    .action(async (ip: string, flags: WhoFlags) => {
      end(await runWho(io, ip, flags))
    })
}

async function runWho(io: Io, ip: string, flags: WhoFlags): Promise<ExitCode> {
  const address = canonicalIp(canonicalAddress(ip))
  if (address === undefined) throw new Failure('usage.bad-argument', explainBadIp(ip))
  if (flags.at !== undefined && parseTimeOrAge(flags.at, 0) === undefined) {
    throw new Failure(
      'usage.bad-argument',
      `--at ${flags.at}: write a time such as 2026-07-23T10:00:00Z, or an age such as 15m`,
    )
  }
  const client = openClient(flags)
  const at = flags.at === undefined ? '' : `?at=${encodeURIComponent(flags.at)}`
  const answer = (await client.getJson(`/api/v1/addresses/${encodeURIComponent(address)}${at}`)) as AddressAnswer
  if (flags.output === 'json') io.out(`${JSON.stringify(answer, undefined, 2)}\n`)
  else io.out(printAnswer(answer))
  if (flags.output === 'wide') io.out(await printHistory(client, address))
  return answer.answer === 'resolved' ? 0 : 1
}

function printAnswer({ address, at, answer, because, holder }: AddressAnswer): string {
  const lines: (readonly [string, string])[] =
    answer === 'resolved' && holder !== null
      ? [
          [holder.kind, `${holder.namespace}/${holder.name}${holder.uid === null ? '' : `  (uid ${holder.uid})`}`],
          ['workload', holder.workload === null ? '' : `${holder.workload.kind} ${holder.workload.name}`],
          ['since', holder.since ?? 'not known'],
          ['until', holder.until ?? (holder.dead ? 'not known' : 'still there')],
          ['last seen', holder.lastSeen ?? 'never'],
        ]
      : [
          [
            answer,
            holder === null ? 'no pod, node or Service' : `nearest: ${holder.kind} ${holder.namespace}/${holder.name}`,
          ],
        ]
  const shown = [...lines, ['why', because] as const].filter(([, text]) => text !== '')
  return `${address} at ${at}\n${shown.map(([name, text]) => `  ${name.padEnd(10)} ${plainText(text)}\n`).join('')}`
}

const mostOwners = 100

async function printHistory(client: BrokerClient, address: string): Promise<string> {
  const page = (await client.getJson(
    `/api/v1/addresses/${encodeURIComponent(address)}/history?limit=${mostOwners}`,
  )) as { readonly items: readonly OwnershipRecord[]; readonly next: string | null }
  const rows = page.items.map((one) => [
    one.heldFrom ?? 'not known',
    one.heldUntil ?? 'still there',
    one.kind,
    `${one.namespace}/${one.name}`,
    one.workload === null ? '' : `${one.workload.kind}/${one.workload.name}`,
    one.deathReason ?? '',
  ])
  const more = page.next === null ? '' : `the newest ${mostOwners}; the broker has more\n`
  return `\n${printTable(['FROM', 'UNTIL', 'KIND', 'NAME', 'WORKLOAD', 'ENDED'], rows)}${more}`
}
