import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Directory } from '#flows/directory'
import type { Labels } from '#flows/holder'
import type { ObservedFlow } from '#flows/observed-flow'
import { parseCluster } from '#manifests/parse-cluster'
import { ciliumSemantics } from '#trace/policy/cilium-semantics'
import { kubernetesSemantics } from '#trace/policy/k8s-semantics'
import { preparePolicies } from '#trace/policy/world'
import { judgeFlow, startAudit } from '#verify/policy/audit'
import { both, directory, generate, knownPod, observed } from './support/observed'

const seed = Number(process.env.PORTOLAN_SEED ?? 66)

/** Few keys and values, so that most sets hold one another or are the same. */
const labels: fc.Arbitrary<Labels> = fc
  .record(
    {
      app: fc.constantFrom('x', 'y'),
      tier: fc.constantFrom('1', '2'),
      track: fc.constant('canary'),
      'app.kubernetes.io/version': fc.constantFrom('1', '2'),
      'kubernetes.io/hidden': fc.constant('from-cilium'),
    },
    { requiredKeys: [] },
  )
  .filter((one) => Object.keys(one).length > 0)

/** Each with two pods, whose labels may differ. */
const workloads = fc.array(fc.tuple(labels, labels), { minLength: 2, maxLength: 5 })

type Crowd = readonly (readonly [Labels, Labels])[]

const uidOf = (workload: number, replica: number): string => `w${workload}-${replica}`

function podOf(crowd: Crowd, workload: number, replica: number) {
  return {
    namespace: 'shop',
    name: uidOf(workload, replica),
    uid: uidOf(workload, replica),
    workload: { kind: 'Deployment', name: `w${workload}` },
    labels: crowd[workload]?.[replica] ?? {},
  }
}

const known = (crowd: Crowd): Directory =>
  directory({
    pods: crowd.flatMap((_, workload) =>
      [0, 1].map((replica) =>
        knownPod({ ...podOf(crowd, workload, replica), addresses: [`10.244.${workload}.${replica}`] }),
      ),
    ),
  })

const db = { namespace: 'back', name: 'db-0', uid: 'db', labels: { app: 'db' } }

const toDb = (crowd: Crowd, workload: number, replica: number): ObservedFlow =>
  observed({
    pod: db,
    peer: podOf(crowd, workload, replica),
    peerAddress: `10.244.${workload}.${replica}`,
  })

test.each(both)(`a workload that was not seen is denied, or told (%s, seed ${seed})`, (kind) => {
  let denied = 0
  fc.assert(
    fc.property(workloads, fc.array(fc.nat(4), { minLength: 1, maxLength: 3 }), (crowd, picks) => {
      const seen = new Set(picks.map((pick) => pick % crowd.length))
      const flows = [...seen].flatMap((workload) => [0, 1].map((replica) => toDb(crowd, workload, replica)))
      const { policies, findings, proof } = generate(flows, { kind, known: known(crowd) })
      expect(proof.faults).toEqual([])
      const told = findings.flatMap(({ code, message }) => (code === 'generate.lets-others' ? [message] : [])).join()
      const { value: cluster } = parseCluster(policies.map(({ text }) => `---\n${text}`).join(''))
      const semantics = kind === 'networkpolicy' ? kubernetesSemantics : ciliumSemantics(cluster)
      const { judge } = startAudit(preparePolicies(cluster, { semantics }), known(crowd))
      for (const [workload] of crowd.entries()) {
        if (seen.has(workload) || told.includes(`Deployment shop/w${workload}`)) continue
        for (const replica of [0, 1]) {
          expect(judgeFlow(judge, toDb(crowd, workload, replica)).kind).toBe('denied')
          denied++
        }
      }
    }),
    { seed, numRuns: 150, verbose: 0 },
  )
  expect(denied).toBeGreaterThan(100)
})
