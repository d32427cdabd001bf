/** Decisions for every protocol and port, in pieces of ports that are decided alike. */
import type { PolicyProtocol } from '#compile/policy/policy-rule'
import type { Decision } from './answer'

/** `ends` are the last ports of pieces in which the decision is the same. */
export type PortPieces = { readonly ends: Uint16Array; readonly decisions: readonly Decision[] }

export type PortTable = { readonly id: number; readonly protocols: Readonly<Record<PolicyProtocol, PortPieces>> }

export function decisionAt({ ends, decisions }: PortPieces, port: number): Decision {
  let index = 0
  while ((ends[index] ?? 65535) < port) index++
  return decisions[index] ?? 'unknown'
}
