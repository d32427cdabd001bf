/** A scrape of the most series that a node has, against prom-client telling the same samples. */
import { get } from 'node:http'
import { Counter, Gauge, Registry } from 'prom-client'
import { buildMetricsRegistry } from '#agent/metrics-registry'
import { startMetrics } from '#agent/metrics-server'
import { metricFamilies } from '#enforce/metric-series'
import type { NodeView } from '#enforce/node-view'
import { bigView } from '../test/node-views'

type Row = readonly string[]

/** 100 interfaces of 64 rules both ways: 27,200 series and the node's own six. */
export async function benchMetrics(rounds: number): Promise<readonly Row[]> {
  const view = bigView(100, 64)
  const ours = buildMetricsRegistry(() => view, 'bench')
  const theirs = usualRegistry(view)
  const server = await startMetrics({ view: () => view, version: 'bench', listen: { address: '127.0.0.1', port: 0 } })
  const times = { text: [] as number[], usual: [] as number[], http: [] as number[] }
  try {
    for (let round = 0; round <= rounds; round++) {
      times.text.push(await timed(ours.scrape))
      times.usual.push(await timed(() => theirs.metrics()))
      times.http.push(await timed(() => scrapeRaw(`${server.url}/metrics`)))
    }
  } finally {
    await server.stop()
  }
  // The first of each meets code that is not compiled yet.
  const [text, usual, http] = [times.text, times.usual, times.http].map((all) => median(all.slice(1)))
  return [
    row('27,206 series as text, against prom-client', text, usual),
    row('the same scraped over HTTP, compressed', http, undefined),
  ]
}

function row(title: string, milliseconds = Number.NaN, measure?: number): Row {
  const shown = measure === undefined ? ['', ''] : [`${measure.toFixed(0)} ms`, (milliseconds / measure).toFixed(2)]
  return [title, `${milliseconds.toFixed(0)} ms`, ...shown, measure === undefined ? '500 ms' : '1', '']
}

/** Compressed, as Prometheus asks for it, and not unpacked: that is the scraper's work, not the agent's. */
function scrapeRaw(url: string): Promise<void> {
  return new Promise((done, fail) => {
    get(url, { headers: { 'accept-encoding': 'gzip' } }, (answer) => answer.resume().on('end', done)).on('error', fail)
  })
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

/** As one would build it with the library alone. */
function usualRegistry(view: NodeView): Registry {
  const registry = new Registry()
  for (const { name, help, type, labels, read } of metricFamilies) {
    const options = { name, help, labelNames: [...labels], registers: [registry] }
    if (type === 'counter') {
      new Counter({
        ...options,
        collect() {
          this.reset()
          for (const { shared, own, value } of read(view)) this.inc({ ...shared, ...own }, value)
        },
      })
    } else {
      new Gauge({
        ...options,
        collect() {
          this.reset()
          for (const { shared, own, value } of read(view)) this.set({ ...shared, ...own }, value)
        },
      })
    }
  }
  return registry
}
