/** The matrix, its differences and lint's advice against plain evaluation, over random policies. */
import { expect, test } from 'vitest'
import type { Cluster } from '#model/cluster'
import { evaluate } from '#trace/policy/evaluate'
import { kubernetesSemantics } from '#trace/policy/k8s-semantics'
import type { Party } from '#trace/policy/party'
import type { Semantics } from '#trace/policy/semantics'
import { preparePolicies } from '#trace/policy/world'
import { clusterOfPolicies } from '../../../test/random/policy-objects'
import { randomOf, seedOfRun } from '../../../test/random/random'
import { type PolicySketch, portPool, protocolPool, randomPolicies } from '../../../test/random/random-policies'
import { buildMatrix } from './build-matrix'
import { diffMatrices } from './diff-matrices'
import { idleRules } from './lint-shadows'
import type { Matrix, MatrixEnd } from './matrix'
import { plainRows } from './print-matrix'

const seed = seedOfRun()
const sketches = Array.from({ length: 36 }, (_, at) => randomPolicies(seed + at))
const worldOf = (cluster: Cluster, semantics: Semantics = kubernetesSemantics) =>
  preparePolicies(cluster, { semantics })
const matrixOf = (sketch: PolicySketch): Matrix => buildMatrix(worldOf(clusterOfPolicies(sketch)), { ipv6: true })

function partiesOf(end: MatrixEnd): readonly Party[] {
  return end.kind === 'workload' ? end.members : end.kind === 'service' ? [] : [end.example]
}

/** Whether a text such as `TCP 80,443-445; UDP 53` holds a port. */
function holds(conn: string | undefined, protocol: string, port: number): boolean {
  if (conn === undefined) return false
  if (conn === 'All Connections') return true
  const own = conn.split('; ').find((part) => part.startsWith(`${protocol} `))
  const ranges = own?.slice(protocol.length + 1).split(',') ?? []
  return ranges.some((range) => {
    const [from = 0, to = from] = range.split('-').map(Number)
    return port >= from && port <= to
  })
}

test(`the matrix by classes is what evaluation pair by pair says (seed ${seed})`, () => {
  let compared = 0
  for (const sketch of sketches) {
    const world = worldOf(clusterOfPolicies(sketch))
    const { rows, workloads } = buildMatrix(world)
    const byPair = new Map(rows.map(({ src, dst, conn }) => [`${src.name} ${dst.name}`, conn]))
    const random = randomOf(sketch.seed + 1)
    const outside = rows.flatMap(({ src, dst }) => [src, dst].filter(({ kind }) => kind === 'outside'))
    const ends: readonly MatrixEnd[] = [...workloads, ...outside.slice(0, 4)]
    for (const src of ends) {
      for (const dst of ends) {
        if (src === dst || (src.kind === 'outside' && dst.kind === 'outside')) continue
        // A range that the other end has in two parts has no row of its own name.
        const conn = byPair.get(`${src.name} ${dst.name}`)
        if (conn === undefined && (src.kind === 'outside' || dst.kind === 'outside')) continue
        for (const protocol of protocolPool) {
          const port = random.pick([...portPool, 1, 65535])
          for (const source of partiesOf(src)) {
            for (const target of partiesOf(dst)) {
              const { allowed } = evaluate(world, { source, target, protocol, port })
              compared++
              if (allowed !== holds(conn, protocol, port)) {
                expect.fail(
                  `seed ${sketch.seed}: ${src.name} => ${dst.name} ${protocol} ${port}: ${conn}, evaluated ${allowed}`,
                )
              }
            }
          }
        }
      }
    }
  }
  expect(compared).toBeGreaterThan(3000)
})

test('ranges of addresses are as large as they can be, and none overlaps another', () => {
  for (const sketch of sketches) {
    const lanes = new Map<string, { readonly from: bigint; readonly to: bigint; readonly conn: string }[]>()
    for (const { src, dst, conn } of matrixOf(sketch).rows) {
      const [end, key] = src.kind === 'outside' ? [src, `from ${dst.name}`] : [dst, `to ${src.name}`]
      if (end.kind !== 'outside') continue
      lanes.set(`${end.family} ${key}`, [...(lanes.get(`${end.family} ${key}`) ?? []), { ...end, conn }])
    }
    for (const lane of lanes.values()) {
      for (const [at, { from, conn }] of lane.entries()) {
        const before = lane[at - 1]
        if (before === undefined) continue
        expect(before.to < from).toBe(true)
        if (before.to + 1n === from) expect(before.conn).not.toBe(conn)
      }
    }
  }
})

test('nothing differs from itself, and a difference turned round is the reverse', () => {
  for (const [at, sketch] of sketches.entries()) {
    const one = matrixOf(sketch)
    expect(diffMatrices(one, matrixOf(sketch))).toEqual([])
    const other = matrixOf({ ...sketch, policies: sketches[at - 1]?.policies ?? [] })
    const turned = diffMatrices(other, one).map(({ change, src, dst, before, after }) => ({
      change: change === 'added' ? 'removed' : change === 'removed' ? 'added' : change,
      src,
      dst,
      ...(after !== undefined && { before: after }),
      ...(before !== undefined && { after: before }),
    }))
    expect(diffMatrices(one, other)).toEqual(turned)
  }
})

test('policies in another order make the same matrix', () => {
  for (const sketch of sketches) {
    const turned = { ...sketch, policies: sketch.policies.toReversed() }
    expect(plainRows(matrixOf(turned).rows)).toEqual(plainRows(matrixOf(sketch).rows))
  }
})

/**
 * Stated with care: a policy isolates whom it selects, and so takes connections from pods that were open. Where it selects
 * only pods that are isolated in its directions already, it can but add.
 */
test('a NetworkPolicy more for pods that are isolated already takes no connection away', () => {
  let tried = 0
  for (const [at, sketch] of sketches.entries()) {
    const closed = sketch.namespaces.map(({ name }) => ({
      namespace: name,
      name: 'closed',
      spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'] as const },
    }))
    const base = { ...sketch, policies: [...closed, ...sketch.policies] }
    const more = sketches[(at + 1) % sketches.length]?.policies ?? []
    const before = matrixOf(base)
    const after = matrixOf({
      ...base,
      policies: [...base.policies, ...more.map((one) => ({ ...one, name: `more-${one.name}` }))],
    })
    for (const change of diffMatrices(before, after)) {
      tried++
      expect(change.change).not.toBe('removed')
      if (change.change !== 'changed') continue
      for (const protocol of protocolPool) {
        for (const port of [1, 65535, ...portPool]) {
          if (holds(change.before, protocol, port)) expect(holds(change.after, protocol, port)).toBe(true)
        }
      }
    }
  }
  expect(tried).toBeGreaterThan(50)
})

test('without a rule that lint calls redundant or shadowed the matrix is the same', () => {
  let removed = 0
  for (const sketch of sketches) {
    // Each policy twice, under another name, so that there is something to find.
    const doubled = sketch.policies.map((policy) => ({ ...policy, name: `again-${policy.name}` }))
    const cluster = clusterOfPolicies({ ...sketch, policies: [...sketch.policies, ...doubled] })
    const world = worldOf(cluster)
    const idle = idleRules({ world })
    const whole = plainRows(buildMatrix(world, { exposure: true }).rows)
    const gone = new Set(idle.map(({ policy, rule }) => `${policy.source.object.name} ${rule.path}`))
    removed += gone.size
    const without: Semantics = {
      ...kubernetesSemantics,
      compile: (from) =>
        kubernetesSemantics.compile(from).map((policy) => ({
          ...policy,
          rules: policy.rules.filter(({ path }) => !gone.has(`${policy.source.object.name} ${path}`)),
        })),
    }
    const rest = buildMatrix(worldOf(cluster, without), { exposure: true }).rows
    const names = new Set(plainRows(rest).map(({ src, dst }) => `${src} ${dst}`))
    // Pods that only a removed rule would name are no longer imagined.
    expect(plainRows(rest)).toEqual(whole.filter(({ src, dst }) => names.has(`${src} ${dst}`) || !/\[/.test(src)))
  }
  expect(removed).toBeGreaterThan(100)
})
