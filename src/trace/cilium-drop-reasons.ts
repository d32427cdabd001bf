/** Why Cilium drops: numbers and texts as monitor and Hubble print them. bpf/lib/drop_reasons.h and pkg/monitor/api/drop.go, Cilium 1.16 to 1.19. */
import type { DropReason } from '#model/walk'

const names = {
  132: 'Invalid source ip',
  133: 'Policy denied',
  134: 'Invalid packet',
  136: 'Fragmentation needed',
  137: 'CT: Unknown L4 protocol',
  139: 'Unsupported L3 protocol',
  140: 'Missed tail call',
  142: 'Unknown L4 protocol',
  143: 'Unknown ICMPv4 code',
  145: 'Unknown ICMPv6 code',
  147: 'Error retrieving tunnel key',
  150: 'Unknown L3 target address',
  151: 'Stale or unroutable IP',
  154: 'Error while correcting L4 checksum',
  155: 'CT: Map insertion failed',
  157: 'IP fragmentation not supported',
  158: 'Service backend not found',
  159: 'Unsupported service protocol',
  160: 'No tunnel/encapsulation endpoint (datapath BUG!)',
  164: 'Local host is unreachable',
  167: 'No mapping for NAT masquerade',
  168: 'Unsupported protocol for NAT masquerade',
  169: 'FIB lookup failed',
  170: 'Encapsulation traffic is prohibited',
  171: 'Invalid identity',
  174: 'Is a ClusterIP',
  177: 'Denied by LB src range check',
  181: 'Policy denied by denylist',
  189: 'Authentication required',
  193: 'Unsupported protocol for DSR encap',
  194: 'No egress gateway found',
  195: 'Traffic is unencrypted',
  197: 'No node ID found',
  203: 'Endpoint policy program not available',
  204: 'No Egress IP configured',
} as const

export type DropNumber = keyof typeof names

export function dropReason(number: DropNumber): DropReason {
  return { number, name: names[number] }
}
