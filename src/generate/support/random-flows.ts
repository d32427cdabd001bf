/** Random flows of a small cluster: workloads with replicas, Services before them, outside addresses, hosts, recycled addresses. */
import fc from 'fast-check'
import type { Directory } from '#flows/directory'
import type { ObservedFlow } from '#flows/observed-flow'
import { at, knownPod, knownService, observed } from './observed'

export type Member = {
  readonly namespace: string
  readonly name: string
  readonly app: string
  readonly replicas: number
  readonly number: number
}

/** Six workloads in three namespaces, two of them with one name. */
export const members: readonly Member[] = [
  ['front', 'web'],
  ['front', 'api'],
  ['back', 'web'],
  ['back', 'db'],
  ['back', 'queue'],
  ['jobs', 'backup'],
].map(([namespace = '', name = ''], number) => ({
  namespace,
  name,
  app: `${name}-${namespace}`,
  replicas: 1 + (number % 3),
  number,
}))

export const addressOf = ({ number }: Member, replica: number): string => `10.244.${number}.${replica + 10}`
const serviceAddress = ({ number }: Member): string => `10.96.0.${number + 10}`
const uidOf = (member: Member, replica: number): string => `${member.app}-${replica}`

export function podWords(member: Member, replica: number) {
  return {
    namespace: member.namespace,
    name: `${member.name}-${replica}`,
    uid: uidOf(member, replica),
    address: addressOf(member, replica),
    workload: { kind: 'Deployment', name: member.name },
    labels: { app: member.app, 'pod-template-hash': `h${replica}` },
  }
}

export const smallCluster: Directory = {
  pods: members.flatMap((member) =>
    Array.from({ length: member.replicas }, (_, replica) => {
      const { address, ...words } = podWords(member, replica)
      return knownPod({ ...words, addresses: [address], ports: [{ name: 'main', protocol: 'TCP', port: 8443 }] })
    }),
  ),
  services: members.map((member) =>
    knownService({
      namespace: member.namespace,
      name: member.name,
      uid: `svc-${member.app}`,
      addresses: [serviceAddress(member)],
      selector: { app: member.app },
      ports: [
        { protocol: 'TCP', port: 80, targetPort: 8080, nodePort: 0 },
        { protocol: 'TCP', port: 443, targetPort: 'main', nodePort: 0 },
      ],
    }),
  ),
  nodes: [{ name: 'worker-1', addresses: ['172.18.0.3'] }],
  workloads: [],
}

const member = fc.constantFrom(...members)
const port = fc.constantFrom(80, 443, 3306, 8080)
const time = fc.constantFrom('2026-07-20T10:00:00', '2026-07-21T11:30:00', '2026-07-23T10:00:00.5')

const words = fc.record({
  own: member,
  other: member,
  port,
  time,
  replica: fc.nat(2),
  otherReplica: fc.nat(2),
  hits: fc.integer({ min: 1, max: 9 }),
})

/** From one workload to another, seen at either end. */
export const podFlow: fc.Arbitrary<ObservedFlow> = fc
  .record({ words, isEgress: fc.boolean(), isDropped: fc.constantFrom(false, false, false, true) })
  .map(({ words: { own, other, replica, otherReplica, ...rest }, isEgress, isDropped }) =>
    flowBetween(own, other, {
      ...rest,
      replica: replica % own.replicas,
      otherReplica: otherReplica % other.replicas,
      isEgress,
      isDropped,
    }),
  )

export type FlowBetween = {
  readonly port: number
  readonly isEgress: boolean
  readonly time?: string
  readonly hits?: number
  readonly replica?: number
  readonly otherReplica?: number
  readonly isDropped?: boolean
}

export function flowBetween(own: Member, other: Member, asked: FlowBetween): ObservedFlow {
  const { port, isEgress, time = '2026-07-20T10:00:00', hits = 1, replica = 0, otherReplica = 0, isDropped } = asked
  const { address, ...peer } = podWords(other, otherReplica)
  return observed({
    direction: isEgress ? 'EGRESS' : 'INGRESS',
    pod: podWords(own, replica),
    peer,
    peerAddress: address,
    port,
    time,
    hits,
    ...(isDropped === true && { decision: 'DROP' }),
  })
}

const serviceFlow = words.map(({ own, other, port: own80, time: when, replica }) =>
  observed({
    direction: 'EGRESS',
    pod: podWords(own, replica % own.replicas),
    peer: {
      kind: 'service',
      namespace: other.namespace,
      name: other.name,
      uid: `svc-${other.app}`,
      labels: { app: other.app },
    },
    peerAddress: serviceAddress(other),
    port: own80 === 3306 ? 80 : own80,
    time: when,
  }),
)

const outsideFlow = fc
  .record({
    words,
    address: fc.constantFrom('203.0.113.7', '2001:db8::9', '::ffff:203.0.113.9'),
    isRejected: fc.boolean(),
    isEgress: fc.boolean(),
  })
  .map(({ words: { own, port: outside, time: when, replica }, address, isRejected, isEgress }) =>
    observed({
      direction: isEgress ? 'EGRESS' : 'INGRESS',
      pod: podWords(own, replica % own.replicas),
      peer: null,
      ...(isRejected && {
        outcome: {
          kind: 'rejected',
          reason: 'started-after',
          nearest: { kind: 'pod', namespace: 'back', name: 'db-9' },
        } as const,
      }),
      peerAddress: address,
      port: outside,
      time: when,
    }),
  )

const hostFlow = words.map(({ own, port: hostPort, time: when, replica }) =>
  observed({
    pod: podWords(own, replica % own.replicas),
    peer: { kind: 'node', namespace: 'kube-system', name: 'proxy-1', uid: null, workload: null, labels: null },
    peerAddress: '172.18.0.3',
    port: hostPort,
    firstSeen: at('2026-07-19T00:00:00'),
    lastSeen: at(when),
  }),
)

export const anyFlow: fc.Arbitrary<ObservedFlow> = fc.oneof(
  { weight: 4, arbitrary: podFlow },
  { weight: 3, arbitrary: serviceFlow },
  { weight: 2, arbitrary: outsideFlow },
  { weight: 1, arbitrary: hostFlow },
)
