/** Edges of the map: what is joined, moved, paged and filtered. Hours have a suite of their own. */
import { expect, test } from 'vitest'
import type { EdgeQuery } from '#store/store'
import { describeStores } from './describe-stores'
import { day, egress, ingest, noon, putPod, putService, second } from './story'

const window = { windowSeconds: 600 }

describeStores('edges', (opened) => {
  const whole: EdgeQuery = { since: noon - day, until: noon + day }

  test('workloads are joined, hits added by hour, and what a late stamp moves is moved', async () => {
    const { store } = opened()
    const [web, db] = ['web', 'db'].map((name) => ({ kind: 'Deployment', name }))
    await putPod(store, 'shop/web', '10.0.0.1', { workload: web ?? null })
    for (const index of [1, 2]) await putPod(store, `shop/db-${index}`, `10.0.1.${index}`, { workload: db ?? null })
    await putService(store, 'shop/db', '10.96.0.1')
    await ingest(store, [
      egress('10.0.1.1', noon),
      egress('10.0.1.2', noon + 3_600 * second, { hits: 4 }),
      egress('10.0.1.3', noon, { hits: 7 }),
      egress('10.96.0.1', noon),
      egress('8.8.8.8', noon, { pod: { namespace: 'x', name: 'stranger', address: null } }),
    ])
    await putPod(store, 'shop/db-3', '10.0.1.3', { workload: db ?? null })
    await store.passes.lateResolve(noon, window)
    expect(await store.passes.foldEdges(noon)).toMatchObject({ kind: 'done' })
    expect(await store.passes.foldEdges(noon)).toEqual({ kind: 'done', done: { folded: 0 } })
    const all = await store.edges(whole, { limit: 100 })
    const lines = all.rows.map(({ from, to, port, hits }) => [end(from), end(to), port, hits].join(' '))
    expect(lines.sort()).toEqual([
      'pod Deployment/web pod Deployment/db 5432 12',
      'pod Deployment/web service db 5432 1',
      'pod stranger internet null 5432 1',
    ])
    const first = await store.edges({ since: noon, until: noon + 3_600 * second }, { limit: 100 })
    expect(first.rows.find(({ to }) => to.workload?.name === 'db')?.hits).toBe(8)
    const pages = []
    for (let cursor: string | undefined; ; ) {
      const page = await store.edges(whole, { limit: 1, ...(cursor === undefined ? {} : { cursor }) })
      pages.push(...page.rows)
      cursor = page.next
      if (cursor === undefined) break
    }
    expect(pages).toEqual(all.rows)
    expect((await store.edges({ ...whole, namespaces: ['x'] }, { limit: 100 })).rows).toHaveLength(1)
  })

  test('what is moved goes from workload to workload, also where the first sighting came before the observer was reported', async () => {
    const { store } = opened()
    const pod = { namespace: 'shop', name: 'web', uid: 'web-1', address: '10.0.0.1' }
    await ingest(store, [egress('10.0.1.3', noon, { pod })])
    await putPod(store, 'shop/web', '10.0.0.1', { uid: 'web-1', workload: { kind: 'Deployment', name: 'web' } })
    await ingest(store, [egress('10.0.1.3', noon + second, { pod, hits: 3 })])
    await putPod(store, 'shop/db', '10.0.1.3')
    await store.passes.lateResolve(noon, window)
    await store.passes.foldEdges(noon)
    const { rows } = await store.edges(whole, { limit: 100 })
    const lines = rows.map(({ from, to, hits }) => [end(from), end(to), hits].join(' '))
    expect(lines).toContain('pod Deployment/web pod db 4')
    expect(lines.filter((line) => /Deployment.web private/.test(line))).toEqual([])
  })

  function end({
    kind,
    workload,
    name,
  }: {
    readonly kind: string
    readonly workload: { readonly kind: string; readonly name: string } | null
    readonly name: string | null
  }): string {
    return `${kind} ${workload === null ? name : `${workload.kind}/${workload.name}`}`
  }
})
