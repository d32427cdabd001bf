/** For tests: objects as kubectl would print them, with only what a test is about, and the cluster they make. */
import type { Finding } from '#base/finding'
import type { Cluster } from '#model/cluster'
import type { ClusterNode } from '#model/node'
import type { Pod } from '#model/pod'
import type { Service } from '#model/service'
import type { BuildOptions } from '../build-cluster'
import { parseCluster } from '../parse-cluster'

export type Raw = { readonly [key: string]: unknown }

/** The parts of a test's cluster by short name: `pod('web-0')` finds `shop/web-0`. */
export type Built = {
  readonly cluster: Cluster
  readonly findings: readonly Finding[]
  /** Codes of findings that are more than news. */
  readonly problems: readonly string[]
  readonly service: (name: string) => Service
  readonly pod: (name: string) => Pod
  readonly node: (name: string) => ClusterNode
  readonly pods: () => readonly Pod[]
  readonly find: (code: string) => Finding
}

export function buildFrom(objects: readonly Raw[], options?: BuildOptions): Built {
  return built(parseCluster(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }), 'f.json', options))
}

export function buildFromText(text: string): Built {
  return built(parseCluster(text, 'f.yaml'))
}

export function rawService(name: string, spec: Raw = {}, rest: Raw = {}): Raw {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'shop' },
    spec: { ports: [{ port: 80 }], ...spec },
    ...rest,
  }
}

export function rawPod(name: string, { labels, ...rest }: Raw = {}): Raw {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'shop', labels }, ...rest }
}

/** A pod as a running cluster shows it. */
export function rawRunningPod(name: string, ip: string, { labels, owner, ...spec }: Raw = {}): Raw {
  const metadata = { name, namespace: 'shop', labels, ownerReferences: owner === undefined ? undefined : [owner] }
  const conditions = [{ type: 'Ready', status: 'True' }]
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec, status: { phase: 'Running', podIP: ip, conditions } }
}

export function rawNode(name: string, ip: string, { labels, ...spec }: Raw = {}): Raw {
  const conditions = [{ type: 'Ready', status: 'True' }]
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels },
    spec,
    status: { addresses: [{ type: 'InternalIP', address: ip }], conditions },
  }
}

/** `spec` goes beside the template; the template's labels are `app: NAME`. */
export function rawWorkload(kind: string, name: string, { template, status, ...spec }: Raw = {}): Raw {
  const apiVersion = kind.endsWith('Job') ? 'batch/v1' : 'apps/v1'
  const labels = { app: name }
  const pod = { metadata: { labels }, spec: { containers: [{ name: 'main' }], ...Object(template) } }
  const jobSpec = { template: pod, ...(apiVersion === 'apps/v1' && { selector: { matchLabels: labels } }), ...spec }
  const whole = kind === 'CronJob' ? { suspend: spec.suspend, jobTemplate: { spec: { template: pod } } } : jobSpec
  return {
    apiVersion,
    kind,
    metadata: { name, namespace: 'shop' },
    spec: whole,
    ...(status !== undefined && { status }),
  }
}

function built({
  value: cluster,
  findings,
}: {
  readonly value: Cluster
  readonly findings: readonly Finding[]
}): Built {
  return {
    cluster,
    findings,
    problems: findings.filter(({ severity }) => severity !== 'info').map(({ code }) => code),
    service: (name) => need(cluster.services.get(`shop/${name}`), name),
    pod: (name) => need(cluster.pods.get(`shop/${name}`), name),
    node: (name) => need(cluster.nodes.get(name), name),
    pods: () => [...cluster.pods.values()],
    find: (code) =>
      need(
        findings.find((finding) => finding.code === code),
        code,
      ),
  }
}

function need<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new Error(`the test's cluster has no ${name}`)
  return value
}
