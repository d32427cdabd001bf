/** `portolan who IP`: who had an address at a time, and why that is known. */
import { type Command, Option } from 'commander'
import { Failure } from '#base/failure'
import { canonicalIp, explainBadIp } from '#base/ip'
import { parsePort } from '#base/port-range'
import { plainText, printTable } from '#base/text'
import { canonicalAddress } from '#flows/address'
import { parseTimeOrAge } from '#wire/flow-query'
import { AddressAnswer, OwnershipRecord } from '#wire/owner-record'
import { listPage } from '#wire/schema-parts'
import { addBrokerOptions, type BrokerClient, type BrokerFlags, openClient } from './broker-client'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'

type WhoFlags = BrokerFlags & { readonly at?: string; readonly output: 'text' | 'wide' | 'json' }

export function addWho(program: Command, { io, end }: CommandContext): void {
  const command = program
    .command('who')
    .description('who had an address at a time: the pod, node or Service, since when, and why that is known')
    .argument('<IP[:PORT[/PROTOCOL]]>', 'the address; with the port that was connected to, the Service of a node port')
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
  const { address, target } = readAsked(ip)
  if (flags.at !== undefined && parseTimeOrAge(flags.at, 0) === undefined) {
    throw new Failure(
      'usage.bad-argument',
      `--at ${flags.at}: write a time such as 2026-07-23T10:00:00Z, or an age such as 15m`,
    )
  }
  const client = openClient(flags)
  const query = new URLSearchParams({ ...(flags.at !== undefined && { at: flags.at }), ...target })
  const answer = await client.getJson(
    `/api/v1/addresses/${encodeURIComponent(address)}${query.size === 0 ? '' : `?${query}`}`,
    AddressAnswer,
  )
  if (flags.output === 'json') io.out(`${JSON.stringify(answer, undefined, 2)}\n`)
  else io.out(printAnswer(answer))
  if (flags.output === 'wide') io.out(await printHistory(client, address))
  return answer.answer === 'resolved' ? 0 : 1
}

type Target = { readonly port: string; readonly protocol: string }

/** `10.0.0.1`, `10.0.0.1:30080`, `[fd00::1]:30053/UDP`. */
function readAsked(text: string): { readonly address: string; readonly target: Target | undefined } {
  const whole = canonicalIp(canonicalAddress(text))
  if (whole !== undefined) return { address: whole, target: undefined }
  const parts = /^(?:\[([^\]]*)\]|([^:/]*)):(\d+)(?:\/([A-Za-z]+))?$/.exec(text)
  const [ip = '', port = '', protocol = 'TCP'] = [parts?.[1] ?? parts?.[2], parts?.[3], parts?.[4]]
  const address = canonicalIp(canonicalAddress(ip))
  if (parts === null) throw new Failure('usage.bad-argument', explainBadIp(text))
  if (address === undefined) throw new Failure('usage.bad-argument', explainBadIp(ip))
  if ((parsePort(port) ?? 0) === 0) {
    throw new Failure(
      'usage.bad-argument',
      `${port} is not a port from 1 to 65535; write ${ip}:30080 or ${ip}:30053/UDP`,
    )
  }
  return { address, target: { port, protocol: protocol.toUpperCase() } }
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
  const page = await client.getJson(
    `/api/v1/addresses/${encodeURIComponent(address)}/history?limit=${mostOwners}`,
    listPage(OwnershipRecord, 'who had it'),
  )
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
