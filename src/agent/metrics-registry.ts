/** What Prometheus scrapes of an agent: the series of traffic policy, read anew each time, and those of the process. */
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import { metricFamilies } from '#enforce/metric-series'
import { printFamilies } from '#enforce/metric-text'
import type { NodeView } from '#enforce/node-view'

export type ReadView = () => NodeView | Promise<NodeView>

export type MetricsRegistry = {
  readonly contentType: string
  /** The text of one scrape; scrapes at the same time are one. */
  readonly scrape: () => Promise<string>
  readonly names: () => readonly string[]
}

export function buildMetricsRegistry(readView: ReadView, version: string): MetricsRegistry {
  const registry = new Registry()
  // Every 10 ms, as it is by itself, measuring how late the event loop is would be all that an idle agent does.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 200 })
  const info = new Gauge({
    name: 'portolan_agent_info',
    help: 'Always 1: the node that the agent speaks for, and its version.',
    labelNames: ['node', 'version'],
    registers: [registry],
  })
  const scrapeOnce = async (): Promise<string> => {
    const view = await readView()
    info.reset()
    info.set({ node: view.node, version }, 1)
    return `${printFamilies(metricFamilies, view)}\n${await registry.metrics()}`
  }
  let running: Promise<string> | undefined
  return {
    contentType: registry.contentType,
    scrape: () => {
      running ??= scrapeOnce().finally(() => {
        running = undefined
      })
      return running
    },
    names: () => [...metricFamilies, ...registry.getMetricsAsArray()].map(({ name }) => name),
  }
}
