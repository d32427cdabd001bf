/** Fragments without ports, of datagrams whose first fragment was not seen: rules for ports cannot match them; bpf/lib/policy.h. */
import { describe, expect, test } from 'vitest'
import { ciliumVersions } from '#model/cilium-version'
import { askCilium, cnp, exampleWorld } from '../../../test/policy/ask-cilium'
import type { Raw } from '../../../test/policy/policy-objects'
import { judgeDirection } from './judge-direction'
import { nearnessOf } from './party-facts'
import { classOf } from './world'

const server = { endpointSelector: { matchLabels: { app: 'server' } } }
const fromClient = { fromEndpoints: [{ matchLabels: { app: 'client' } }] }
const ports = (port: string, protocol: string): Raw => ({ toPorts: [{ ports: [{ port, protocol }] }] })

/** What becomes of a fragment from A to B in each version: equal in all of them. */
function fateOf(spec: Raw): string {
  const fates = ciliumVersions.map((version) => {
    const { world, party } = askCilium([...exampleWorld, cnp('business/p', { ...server, ...spec })], { version })
    const [a, b] = [party('A'), party('B')]
    const ends = { subject: classOf(world, b), peer: classOf(world, a), nearness: nearnessOf(a, b) }
    const at = { protocol: 'UDP', port: 8080, isLostFragment: true } as const
    const { decision, because } = judgeDirection(world, 'ingress', { ends, at }).judgement
    return `${decision} ${because.map(({ code }) => code).find((code) => code.startsWith('cilium.drop-')) ?? ''}`.trim()
  })
  expect(new Set(fates).size).toBe(1)
  return fates[0] ?? ''
}

describe('a fragment whose datagram nobody knows', () => {
  test('is dropped with 157 where rules name ports, also the one that it is for', () => {
    expect(fateOf({ ingress: [{ ...fromClient, ...ports('8080', 'UDP') }] })).toBe('denied cilium.drop-157')
  })

  test('passes where a rule holds for the peer or the protocol whole', () => {
    expect(fateOf({ ingress: [fromClient] })).toBe('allowed')
    expect(fateOf({ ingress: [{ ...fromClient, ...ports('0', 'UDP') }] })).toBe('allowed')
  })

  test('is dropped with 181 where the peer is denied', () => {
    expect(fateOf({ ingress: [{}], ingressDeny: [fromClient] })).toBe('denied cilium.drop-181')
  })
})
