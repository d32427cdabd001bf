/** The agent's metrics over HTTP, and that docs/metrics.md and the dashboard speak of these and of no others. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { buildMetricsRegistry } from '#agent/metrics-registry'
import { type MetricsOptions, type RunningMetrics, startMetrics } from '#agent/metrics-server'
import { metricFamilies } from '#enforce/metric-series'
import { printFamilies } from '#enforce/metric-text'
import type { NodeView } from '#enforce/node-view'
import { type ExposedFamily, lintFamilies, parseExposition } from './exposition'
import { bigView } from './node-views'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

const running: RunningMetrics[] = []
afterEach(async () => {
  for (const one of running.splice(0)) await one.stop()
})

async function start(options: Partial<MetricsOptions> = {}): Promise<string> {
  const listen = { address: '127.0.0.1', port: 0 }
  const started = await startMetrics({ view: () => bigView(2, 3), version: '1.2.3', listen, ...options })
  running.push(started)
  return started.url
}

async function scrape(url: string): Promise<ReadonlyMap<string, ExposedFamily>> {
  const answer = await fetch(`${url}/metrics`)
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  return new Map(parseExposition(await answer.text()).map((family) => [family.name, family]))
}

describe('the server', () => {
  test('tells every family in a text that Prometheus takes, and the process’s own', async () => {
    const families = await scrape(await start())
    for (const { name, type, help } of metricFamilies) expect(families.get(name)).toMatchObject({ type, help })
    expect(families.get('portolan_agent_info')?.samples).toEqual([
      { name: 'portolan_agent_info', labels: { node: 'node-of-the-bench', version: '1.2.3' }, value: 1 },
    ])
    expect([...families.keys()].filter((name) => /^(process|nodejs)_/.test(name)).length).toBeGreaterThan(10)
  })

  test('names and help of what is ours pass what promtool asks of them', async () => {
    const own = [...(await scrape(await start())).values()].filter(({ name }) => name.startsWith('portolan_'))
    expect(own).toHaveLength(metricFamilies.length + 1)
    expect(lintFamilies(own)).toEqual([])
    const bad = lintFamilies([{ name: 'hits_total', help: 'x', type: 'gauge', samples: [] }])
    expect(bad).toEqual(['hits_total: _total, and no counter'])
  })

  test('what was told once and is there no more is told no more', async () => {
    let view: NodeView = bigView(2, 3)
    const url = await start({ view: () => view })
    const before = (await scrape(url)).get('portolan_traffic_policy_rule_hits_total')
    expect(before?.samples).toHaveLength(12)
    view = { ...bigView(1, 3), mode: 'unknown' }
    const after = await scrape(url)
    expect(after.get('portolan_traffic_policy_rule_hits_total')?.samples).toHaveLength(6)
    const modes = after.get('portolan_traffic_policy_mode')?.samples ?? []
    expect(modes.filter(({ value }) => value === 1).map(({ labels }) => labels.mode)).toEqual(['unknown'])
  })

  test('a view that cannot be read is no empty answer, and the next scrape tries again', async () => {
    let isBroken = true
    const view = (): NodeView => {
      if (isBroken) throw new Error('the table is gone')
      return bigView(1, 1)
    }
    const url = await start({ view })
    const answer = await fetch(`${url}/metrics`)
    expect([answer.status, await answer.text()]).toEqual([500, 'the metrics cannot be read: the table is gone\n'])
    isBroken = false
    expect((await scrape(url)).size).toBeGreaterThan(10)
  })

  test('scrapes at the same time read the node once', async () => {
    let reads = 0
    const view = async (): Promise<NodeView> => {
      reads += 1
      await new Promise((done) => setTimeout(done, 50))
      return bigView(1, 1)
    }
    const registry = buildMetricsRegistry(view, '1')
    const [one, other] = await Promise.all([registry.scrape(), registry.scrape()])
    expect(one).toBe(other)
    expect(reads).toBe(1)
    await registry.scrape()
    expect(reads).toBe(2)
  })

  test('/healthz says why an agent is not well; other paths and methods are refused', async () => {
    let trouble: string | undefined
    const url = await start({ trouble: () => trouble })
    const ask = async (path: string, method = 'GET') => {
      const answer = await fetch(`${url}${path}`, { method })
      return [answer.status, await answer.text()]
    }
    expect(await ask('/healthz')).toEqual([200, 'ok\n'])
    trouble = 'the datapath cannot be opened'
    expect(await ask('/healthz')).toEqual([503, 'the datapath cannot be opened\n'])
    expect(await ask('/')).toEqual([404, 'there are /metrics and /healthz\n'])
    expect(await ask('/metrics', 'POST')).toEqual([405, 'POST is not answered here; use GET\n'])
    expect(await ask('/metrics?a=b', 'HEAD')).toEqual([200, ''])
  })

  test('a port that is taken is told with what to do', async () => {
    const url = new URL(await start())
    const listen = { address: '127.0.0.1', port: Number(url.port) }
    await expect(startMetrics({ view: () => bigView(1, 1), version: '1', listen })).rejects.toThrow(
      /^cannot serve metrics on 127\.0\.0\.1:\d+: something listens there already/,
    )
  })

  test('46: 27,200 series of 100 interfaces reach the scraper, each with its own count', async () => {
    const families = await scrape(await start({ view: () => bigView(100, 64) }))
    const own = metricFamilies.flatMap(({ name }) => families.get(name)?.samples ?? [])
    expect(own).toHaveLength(27_200 + 6)
    const counts = own.filter(({ labels }) => 'direction' in labels).map(({ value }) => value)
    expect(new Set(counts).size).toBe(27_200)
  })
})

test('labels of any text survive the way', () => {
  const [held, ...others] = bigView(1, 1).interfaces
  if (held === undefined) throw new Error('there is no interface')
  const view = { ...bigView(1, 1), interfaces: [{ ...held, attachment: 'a"b\\c\nd', vpc: '' }, ...others] }
  const [family] = parseExposition(printFamilies(metricFamilies, view))
  expect(family?.samples[0]?.labels).toMatchObject({ attachment: 'a"b\\c\nd', vpc: '' })
})

test.each([
  ['a label twice', '# HELP a x\n# TYPE a gauge\na{b="1",b="2"} 1\n'],
  ['a series twice', '# HELP a x\n# TYPE a gauge\na{b="1"} 1\na{b="1"} 2\n'],
  ['no type', '# HELP a x\na 1\n'],
  ['an open quote', '# HELP a x\n# TYPE a gauge\na{b="1} 1\n'],
  ['no number', '# HELP a x\n# TYPE a gauge\na one\n'],
  ['no end', '# HELP a x\n# TYPE a gauge\na 1'],
])('the reader of these tests refuses %s', (_, text) => {
  expect(() => parseExposition(text)).toThrow()
})

const page = read('docs/metrics.md')
const names = new Set(buildMetricsRegistry(() => bigView(1, 1), '1').names())
/** What Prometheus itself adds. */
const scraped = ['job', 'instance', 'up']
const labelNames = new Set([...metricFamilies.flatMap(({ labels }) => labels), 'node', 'version', ...scraped])

test('docs/metrics.md has a row for every family, with its type and labels, and no other', () => {
  const rows = [...page.matchAll(/^\| `(portolan_\w+)` \| (\w+) \|(.*?)\|/gm)].map(([, name, type, labels]) => ({
    name,
    type,
    labels: [...String(labels).matchAll(/`(\w+)`/g)].map(([, label]) => label),
  }))
  const info = { name: 'portolan_agent_info', type: 'gauge', labels: ['node', 'version'] }
  expect(rows).toEqual([...metricFamilies.map(({ name, type, labels }) => ({ name, type, labels })), info])
})

const functions =
  /\b(sum|count|rate|increase|delta|topk|absent|vector|max_over_time|by|on|and|or|unless|offset|group_left)\b/g

/** Metrics and labels that a query speaks of; strings, durations, numbers, variables and functions are left out. */
function wordsOf(expression: string): readonly string[] {
  const plain = expression
    .replaceAll(/"[^"]*"/g, '')
    .replaceAll(/\[[^\]]*\]/g, '')
    .replaceAll(/offset \w+/g, '')
    .replaceAll(functions, '')
  return [...plain.matchAll(/[a-z_][a-z0-9_]*/gi)].map(([word]) => word)
}

function checkQuery(expression: string): void {
  const words = wordsOf(expression)
  expect(words.filter((word) => !names.has(word) && !labelNames.has(word))).toEqual([])
  expect(words.some((word) => names.has(word) || word === 'up')).toBe(true)
  expect([...expression].filter((one) => one === '(')).toHaveLength([...expression].filter((one) => one === ')').length)
  // A value that no series has would make a query silent for ever.
  for (const [, label, , value] of expression.matchAll(/(mode|reason|action)(=~?)"([^"$]+)"/g)) {
    const known = { mode: modes, reason: reasons, action: ['allow', 'deny'] }[String(label) as 'mode']
    expect(
      String(value)
        .split('|')
        .filter((one) => !known.includes(one)),
    ).toEqual([])
  }
}

const modes = ['off', 'audit', 'enforce', 'unsupported', 'unknown']
const reasons = Object.keys(bigView(1, 1).interfaces[0]?.directions[0]?.fallbacks ?? {})

const queries = [
  ...[...page.matchAll(/```promql\n([\s\S]*?)```/g)].map(([, query]) => String(query)),
  ...[...page.matchAll(/^ {8}expr: (?:\|\n((?: {10}.*\n)+)|(.+))/gm)].map(([, block, line]) => String(block ?? line)),
]

test('docs/metrics.md has queries and alerts', () => {
  expect(queries.length).toBeGreaterThan(10)
})

test.each(queries)('docs/metrics.md: %s', checkQuery)

test('the check of queries can fail', () => {
  expect(() => checkQuery('rate(portolan_traffic_policy_rule_hit_total[5m])')).toThrow()
  expect(() => checkQuery('portolan_traffic_policy_mode{mode="enforced"}')).toThrow()
})

type Panel = {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly refId: string; readonly expr: string; readonly datasource: { uid: string } }[]
}
type Dashboard = {
  readonly uid: string
  readonly schemaVersion: number
  readonly panels: readonly Panel[]
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string | { query: string } }[]
  }
}

describe('dashboards/traffic-policy.json', () => {
  const board = JSON.parse(read('dashboards/traffic-policy.json')) as Dashboard
  const targets = board.panels.flatMap(({ title, targets = [] }) => targets.map((one) => ({ title, ...one })))
  const variables = board.templating.list.map(({ name }) => name)

  test('is one that Grafana takes: ids and places of their own, and every panel has a query', () => {
    expect(board.schemaVersion).toBeGreaterThanOrEqual(38)
    expect(board.uid.length).toBeLessThanOrEqual(40)
    expect(new Set(board.panels.map(({ id }) => id)).size).toBe(board.panels.length)
    const cells = board.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
    expect(board.panels.every(({ gridPos: { x, w } }) => x >= 0 && x + w <= 24)).toBe(true)
    for (const { type, targets: own = [] } of board.panels) expect(own.length > 0).toBe(type !== 'row')
    for (const { datasource } of targets) expect(datasource.uid).toMatch(/^\$\{datasource\}$/)
  })

  test.each(targets)('$title', ({ expr }) => {
    checkQuery(expr.replaceAll(/\$__\w+/g, ''))
    const used = [...expr.matchAll(/\$(?!__)(\w+)/g)].map(([, name]) => String(name))
    expect(used.filter((name) => !variables.includes(name))).toEqual([])
  })

  test('every family is on it, and its variables ask for series that there are', () => {
    const shown = targets.map(({ expr }) => expr).join('\n')
    expect(metricFamilies.map(({ name }) => name).filter((name) => !shown.includes(name))).toEqual([])
    for (const { query } of board.templating.list) {
      if (typeof query === 'string') continue
      const found = /^label_values\((\w+)(?:\{.*\})?, (\w+)\)$/.exec(query.query)
      expect(names.has(String(found?.[1]))).toBe(true)
      expect(labelNames.has(String(found?.[2]))).toBe(true)
    }
  })
})
