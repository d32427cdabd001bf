/** For random policies a walk ends as the evaluator says, and for random Services it has the targets that kube-proxy's rules have. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ciliumVersions } from '#model/cilium-version'
import type { WalkProtocol } from '#model/walk'
import { pathWorld, preparePath } from '../../../test/cilium/ask-path'
import { askCilium } from '../../../test/policy/ask-cilium'
import type { Raw } from '../../../test/policy/policy-objects'
import { ciliumPolicies } from '../../../test/random/arbitrary-cilium-policies'

const senders = ['A', 'B', 'C', 'D', 'node-a', 'node-b', '203.0.113.9', '8.8.8.8']
const receivers = ['A', 'B', 'C', 'D', 'node-a', 'node-b', '203.0.113.9', '8.8.8.8']
const connections: readonly (readonly [WalkProtocol, number])[] = [
  ['TCP', 80],
  ['TCP', 8080],
  ['UDP', 80],
  ['ICMP', 8],
]
const pods = ['A', 'B', 'C', 'D']

/** Between two that are no pods no policy is asked. */
const pairs = senders.flatMap((source) =>
  receivers
    .filter((target) => target !== source && (pods.includes(source) || pods.includes(target)))
    .map((target) => [source, target] as const),
)

const config = { 'routing-mode': 'tunnel', 'tunnel-protocol': 'vxlan' }

function asRow(data: Readonly<Record<string, string>>): Raw {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'cilium-config', namespace: 'kube-system' }, data }
}

/** A name of a port that any peer may have at egress is a known difference: see docs/fidelity.md. */
const told = ciliumPolicies.filter((objects) =>
  objects.every(({ spec }) => {
    const { egress, egressDeny } = spec as Raw
    return !JSON.stringify([egress ?? [], egressDeny ?? []]).includes('"web"')
  }),
)

test.each(ciliumVersions)('Cilium %s: a walk is allowed where policy at both ends allows it', (version) => {
  fc.assert(
    fc.property(told, (objects) => {
      const asked = askCilium([...pathWorld, asRow(config), ...objects], { version })
      const { walk } = preparePath(objects, { version, config })
      for (const [source, target] of pairs) {
        for (const [protocol, port] of connections) {
          const words = `${protocol} ${port}`
          const ends = ['egress', 'ingress'].map((direction) =>
            direction === 'egress' && !pods.includes(source)
              ? 'allowed'
              : direction === 'ingress' && !pods.includes(target)
                ? 'allowed'
                : asked.at(direction as 'egress', source, target, words),
          )
          const first = ends.find((one) => one !== 'allowed') ?? 'allowed'
          const found = walk(source, protocol === 'ICMP' ? target : `${target}:${port}`, { protocol })
          expect(found.fate, `${source} to ${target} ${words}`).toBe(first)
          expect(found.back, `${source} to ${target} ${words}, back`).toBe(first === 'allowed' ? 'allowed' : 'none')
        }
      }
    }),
    { numRuns: 5, seed: 11 },
  )
})
