/** What Hubble calls a packet of ICMP in `Summary`. Mirrors the names of layers/icmp4.go and icmp6.go of gopacket 1.1, which pkg/hubble/parser/threefour prints. */

type Kind = { readonly type: string; readonly codes?: readonly string[] }

const unreachable = [
  ...['Net', 'Host', 'Protocol', 'Port', 'FragmentationNeeded', 'SourceRoutingFailed', 'NetUnknown', 'HostUnknown'],
  ...['SourceIsolated', 'NetAdminProhibited', 'HostAdminProhibited', 'NetTOS', 'HostTOS', 'CommAdminProhibited'],
  ...['HostPrecedence', 'PrecedenceCutoff'],
]
const unreachable6 = [
  ...['NoRouteToDst', 'AdminProhibited', 'BeyondScopeOfSrc', 'AddressUnreachable', 'PortUnreachable'],
  ...['SrcAddressFailedPolicy', 'RejectRouteToDst'],
]
const reassembly = 'FragmentReassemblyTimeExceeded'

const kinds: Readonly<Record<'ICMPv4' | 'ICMPv6', Readonly<Record<number, Kind>>>> = {
  ICMPv4: {
    0: { type: 'EchoReply' },
    3: { type: 'DestinationUnreachable', codes: unreachable },
    8: { type: 'EchoRequest' },
    11: { type: 'TimeExceeded', codes: ['TTLExceeded', reassembly] },
    12: { type: 'ParameterProblem', codes: ['PointerIndicatesError', 'MissingOption', 'BadLength'] },
    13: { type: 'TimestampRequest' },
    14: { type: 'TimestampReply' },
  },
  ICMPv6: {
    1: { type: 'DestinationUnreachable', codes: unreachable6 },
    2: { type: 'PacketTooBig' },
    3: { type: 'TimeExceeded', codes: ['HopLimitExceeded', reassembly] },
    4: {
      type: 'ParameterProblem',
      codes: ['ErroneousHeaderField', 'UnrecognizedNextHeader', 'UnrecognizedIPv6Option'],
    },
    128: { type: 'EchoRequest' },
    129: { type: 'EchoReply' },
  },
}

/** `ICMPv4 DestinationUnreachable(Port)`, `ICMPv4 EchoRequest`. */
export function icmpSummary(
  name: 'ICMPv4' | 'ICMPv6',
  { type, code }: { readonly type: number; readonly code: number },
): string {
  const kind = kinds[name][type]
  if (kind === undefined) return `${name} ${type}(${code})`
  if (kind.codes === undefined && code === 0) return `${name} ${kind.type}`
  return `${name} ${kind.type}(${kind.codes?.[code] ?? code})`
}
