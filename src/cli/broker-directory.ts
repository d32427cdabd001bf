/** The pods and Services that a broker knows, as the directory that generators and audits look identities up in. */

import type { Static, TSchema } from 'typebox'
import type { Directory, KnownPod, KnownService } from '#flows/directory'
import type { DeathReason, Labels } from '#flows/holder'
import { type Instant, parseInstant } from '#flows/instant'
import { PodAnswer, ServiceAnswer } from '#wire/owner-record'
import { answerReader } from './broker-answer'
import type { BrokerClient } from './broker-client'

export async function readBrokerDirectory(client: BrokerClient): Promise<Directory> {
  const pods: KnownPod[] = []
  for await (const pod of readLines(client, '/api/v1/pods', PodAnswer)) pods.push(knownPod(pod))
  const services: KnownService[] = []
  for await (const one of readLines(client, '/api/v1/services?deleted=true', ServiceAnswer))
    services.push(knownService(one))
  return { pods, services, nodes: [], workloads: [] }
}

async function* readLines<Schema extends TSchema>(
  client: BrokerClient,
  path: string,
  schema: Schema,
): AsyncGenerator<Static<Schema>> {
  const read = answerReader(`${client.url}${path}`, schema)
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of await client.getStream(path, 'application/x-ndjson')) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line !== '') yield read(line)
  }
  if (rest.trim() !== '') yield read(rest)
}

function knownPod(pod: PodAnswer): KnownPod {
  return {
    namespace: pod.namespace,
    name: pod.name,
    uid: pod.uid,
    labels: (pod.labels ?? {}) as Labels,
    hasAllLabels: false,
    addresses: pod.addresses,
    isHostNetwork: pod.hostNetwork === true,
    nodeName: pod.node,
    workload: pod.workload,
    startedAt: instantOf(pod.startedAt),
    lastSeen: instantOf(pod.lastSeen),
    isDead: pod.dead,
    diedAt: instantOf(pod.diedAt),
    deathReason: pod.deathReason as DeathReason | null,
    ports: null,
  }
}

function knownService(service: ServiceAnswer): KnownService {
  return {
    namespace: service.namespace,
    name: service.name,
    uid: service.uid,
    addresses: service.addresses.map(({ address }) => address),
    selector: service.selector as Labels | null,
    ports: service.ports,
    endpoints: [],
    createdAt: instantOf(service.createdAt),
    deletedAt: instantOf(service.deletedAt),
  }
}

function instantOf(text: string | null): Instant | null {
  return text === null ? null : (parseInstant(text) ?? null)
}
