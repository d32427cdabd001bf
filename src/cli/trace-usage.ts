/** What the options of `portolan trace` say of a packet, and which of them do not go together. */
import { Failure } from '#base/failure'
import { explainBadIp, type Ip, parseEndpoint, printEndpoint, printIp } from '#base/ip'
import type { ConnectionState, Packet, PacketProtocol } from '#model/packet'
import type { FromOptions, ProxyOptions } from './options'
import { checkProxyOptions, proxyFlags, settingFlags } from './options'
import { meansCluster } from './read-inputs-objects'

export type TraceOptions = FromOptions &
  ProxyOptions & {
    readonly ruleset?: readonly string[]
    readonly to?: string
    readonly all?: boolean
    readonly proto: 'tcp' | 'udp' | 'sctp' | 'icmp' | 'icmpv6'
    readonly source?: string
    readonly inInterface?: string
    readonly outInterface?: string
    readonly nodeLocal?: boolean
    readonly localSource?: boolean
    readonly state?: ConnectionState
    readonly mark?: number
    readonly nodeIp?: readonly Ip[]
    readonly simulate?: number
    readonly seed: number
    readonly output: 'text' | 'wide' | 'json' | 'yaml'
  }

/** Whether the user wrote an option, and not only its default. */
export type IsGiven = (name: string) => boolean

function usage(sentence: string): Failure {
  return new Failure('usage.bad-argument', sentence)
}

export function checkUsage(options: TraceOptions, isGiven: IsGiven): void {
  if ((options.to === undefined) === (options.all !== true)) {
    throw usage('say either which packet with --to IP:PORT, or all of them with --all')
  }
  if (options.localSource === true && options.inInterface !== undefined) {
    throw usage(
      '--local-source is a process of the node: its packets come in through no interface; leave --in-interface out',
    )
  }
  if (isGiven('seed') && options.simulate === undefined) {
    throw usage('--seed is for drawn connections; add --simulate COUNT, or leave it out')
  }
  checkIdle(options, isGiven)
  if (options.all === true) checkAll(isGiven)
}

/** Options for computing rules, where the rules are given. */
function checkIdle(options: TraceOptions, isGiven: IsGiven): void {
  if (options.ruleset === undefined) return
  const hasObjects = options.from !== undefined || meansCluster(options)
  const idle = (hasObjects ? settingFlags : proxyFlags).find(({ name }) => isGiven(name))
  if (idle === undefined) return
  const need = hasObjects ? 'computed rules, without --ruleset' : 'objects, with --from or --kubeconfig'
  throw usage(`${idle.flag} is for ${need}; the rules of --ruleset are as they are: leave ${idle.flag} out`)
}

const packetFlags = [
  ['proto', '--proto'],
  ['source', '--source'],
  ['inInterface', '--in-interface'],
  ['outInterface', '--out-interface'],
  ['nodeLocal', '--node-local'],
  ['localSource', '--local-source'],
  ['state', '--state'],
  ['mark', '--mark'],
  ['simulate', '--simulate'],
] as const

function checkAll(isGiven: IsGiven): void {
  const [, flag] = packetFlags.find(([name]) => isGiven(name)) ?? []
  if (flag === undefined) return
  throw usage(`${flag} is of one packet, and --all asks every rule's own; leave it out, or name a packet with --to`)
}

/** `family` of the packet, or of each that is surveyed. */
export function checkFamily(options: TraceOptions, family: 'ipv4' | 'ipv6', isGiven: IsGiven): void {
  if (options.to !== undefined && isGiven('family') && options.family !== family) {
    throw usage(`--family ${options.family} and --to ${options.to} contradict each other; leave --family out`)
  }
  if (options.ruleset === undefined) checkProxyOptions(options, family)
}

export function packetOf(options: TraceOptions, to: string): Packet {
  const destination = parsePlace('--to', to)
  const source = options.source === undefined ? undefined : parsePlace('--source', options.source)
  const isIcmp = options.proto === 'icmp' || options.proto === 'icmpv6'
  checkPorts(options, destination, source)
  if (source !== undefined && source.ip.family !== destination.ip.family) {
    throw usage(`--source ${options.source} and --to ${to} are of different address families`)
  }
  if (options.proto === 'icmpv6' && destination.ip.family === 'ipv4') {
    throw usage(`--proto icmpv6 and --to ${to} do not go together: ICMPv6 is of IPv6; write --proto icmp`)
  }
  const protocol: PacketProtocol = isIcmp ? (destination.ip.family === 'ipv4' ? 'icmp' : 'icmpv6') : options.proto
  return {
    destination: destination.ip,
    protocol,
    ...(isIcmp || destination.port === undefined ? {} : { destinationPort: destination.port }),
    ...(source === undefined ? {} : { source: source.ip }),
    ...(source?.port === undefined ? {} : { sourcePort: source.port }),
    ...(options.inInterface === undefined ? {} : { inInterface: options.inInterface }),
    ...(options.outInterface === undefined ? {} : { outInterface: options.outInterface }),
    ...(options.mark === undefined ? {} : { mark: options.mark }),
    ...(options.state === undefined ? {} : { state: options.state }),
    ...(isIcmp ? { icmp: { type: protocol === 'icmp' ? 8 : 128, code: 0 } } : {}),
  }
}

type Place = { readonly ip: Ip; readonly port?: number }

function checkPorts({ proto, to, source: from }: TraceOptions, destination: Place, source: Place | undefined): void {
  const isIcmp = proto === 'icmp' || proto === 'icmpv6'
  if (!isIcmp && destination.port === undefined) {
    throw usage(
      `--to ${to} names no port; write ${printEndpoint(printIp(destination.ip), 80)}, or --proto icmp for a ping`,
    )
  }
  if (isIcmp && destination.port !== undefined) {
    throw usage(`--to ${to} names a port, and a ping has none; write --to ${printIp(destination.ip)}`)
  }
  if (isIcmp && source?.port !== undefined) {
    throw usage(`--source ${from} names a port, and a ping has none; write --source ${printIp(source.ip)}`)
  }
}

function parsePlace(flag: string, text: string): Place {
  const parsed = parseEndpoint(text)
  if (parsed !== undefined) return parsed
  const address = /^\[([^\]]*)\]/.exec(text)?.[1] ?? (text.split(':').length === 2 ? (text.split(':')[0] ?? '') : text)
  const port = /^(?:\[[^\]]*\]|[^:]*):(.*)$/.exec(text)?.[1]
  const isPortBad = port !== undefined && !(/^\d+$/.test(port) && Number(port) <= 65535) && !text.includes('::')
  const why = isPortBad ? `"${port}" is not a port from 0 to 65535` : explainBadIp(address)
  throw usage(`${flag} ${text}: ${why}; write IP:PORT, or [IP]:PORT for IPv6`)
}
