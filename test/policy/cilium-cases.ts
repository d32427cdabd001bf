/** What Cilium's cases are written with: policies on the server B, and questions in every version. */
import { expect } from 'vitest'
import type { CiliumOptions } from '#compile/policy/cilium-options'
import { type CiliumVersion, ciliumVersions } from '#model/cilium-version'
import { askCilium, type CiliumAsked, cnp, exampleWorld } from './ask-cilium'
import type { Raw } from './policy-objects'

export const server = { endpointSelector: { matchLabels: { app: 'server' } } }
export const client = { endpointSelector: { matchLabels: { app: 'client' } } }
export const fromClient = { fromEndpoints: [{ matchLabels: { app: 'client' } }] }
export const tcp = (port: string, more: Raw = {}): Raw => ({ ports: [{ port, protocol: 'TCP' }], ...more })

export const article = cnp('business/article', { ...server, ingress: [{ ...fromClient, toPorts: [tcp('8080')] }] })
export const nothing = cnp('business/nothing', { ...server, ingress: [{}] })

export function ask(policies: readonly Raw[], options: CiliumOptions = {}): CiliumAsked {
  return askCilium([...exampleWorld, ...policies], options)
}

export type Row = readonly [source: string, connection: string, expected: string]

/** `ask` in one version, unless another one is asked for. */
export function askIn(version: CiliumVersion): typeof ask {
  return (policies, options = {}) => ask(policies, { version, ...options })
}

/** Ingress of B, in every version unless one is asked for. */
export function expectAtB(policies: readonly Raw[], rows: readonly Row[], options: CiliumOptions = {}): void {
  for (const version of options.version === undefined ? ciliumVersions : [options.version]) {
    const asked = ask(policies, { ...options, version })
    const found = rows.map(
      ([source, connection]): Row => [source, connection, asked.at('ingress', source, 'B', connection)],
    )
    expect([version, found]).toEqual([version, rows])
  }
}

export function isRefused(policy: Raw, options: CiliumOptions = {}): boolean {
  const { findings } = ask([policy], options)
  return findings.some(({ code }) => code === 'policy.refused' || code === 'policy.agent-refuses')
}
