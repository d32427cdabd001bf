/** Putting parties into classes: those of one class are matched alike by every policy of the world. */
import { type Family, type Ip, printIp } from '#base/ip'
import { compareText } from '#base/text'
import type { Labels } from '#model/meta'
import { type NamedPort, namedPorts } from '#model/pod'
import { findAtom } from './address-atoms'
import type { Party, PartyClass } from './party'
import { addressesOf, addressOf, hasEnded, isOnHost, namespaceLabelsOf, nodeOf } from './party-facts'
import type { PolicyWorld } from './policy-world'

/** `family` tells which address of a party with two counts; without it the first does. */
export function classOf(world: PolicyWorld, party: Party, family?: Family): PartyClass {
  if (party.kind === 'address') return classOfAddress(world, party)
  const known = world.memory.partyIds[family ?? 'any']
  const holder =
    party.kind === 'pod' && party.namespaceLabels === undefined
      ? party.pod
      : party.kind === 'node'
        ? party.node
        : undefined
  const knownId = holder === undefined ? undefined : known.get(holder)
  const knownClass = knownId === undefined ? undefined : world.classes[knownId]
  if (knownClass !== undefined) return knownClass
  const found = findClass(world, party, family)
  if (holder !== undefined) known.set(holder, found.id)
  return found
}

/** Matrices ask for the same few addresses again and again, for each workload. */
function classOfAddress(world: PolicyWorld, party: Extract<Party, { kind: 'address' }>): PartyClass {
  const { addressIds } = world.memory
  const key = printIp(party.ip)
  const known = world.classes[addressIds.get(key) ?? -1]
  if (known !== undefined) return known
  const found = findClass(world, party, undefined)
  addressIds.set(key, found.id)
  return found
}

function findClass(world: PolicyWorld, party: Party, family: Family | undefined): PartyClass {
  const { cluster, semantics, classes, memory } = world
  const described = describe(world, party, addressOf(cluster, party, family))
  const key = JSON.stringify([
    described.kind,
    described.isNodeKnown,
    described.namespace,
    textOfLabels(world, described.labels),
    textOfLabels(world, described.namespaceLabels),
    described.ports.map(textOfPort).sort(compareText),
    atomOf(world, described),
    semantics.distinguish(party, described.ip),
  ])
  const id = memory.classIds.get(key)
  const known = id === undefined ? undefined : classes[id]
  if (known !== undefined) return known
  const added = { id: classes.length, ...described }
  memory.classIds.set(key, added.id)
  classes.push(added)
  return added
}

/** A host-networked pod is described as its node. */
function describe(world: PolicyWorld, party: Party, ip: Ip | undefined): Omit<PartyClass, 'id'> {
  const { cluster } = world
  const address = ip === undefined ? {} : { ip }
  const plain = { party, labels: {}, namespaceLabels: {}, ports: [], isNodeKnown: true, ...address }
  if (party.kind === 'pod' && !isOnHost(party)) {
    const { meta } = party.pod
    const namespaceLabels = namespaceLabelsOf(cluster, party)
    const ports = namedPorts(party.pod)
    return { ...plain, kind: 'pod', namespace: meta.namespace, labels: meta.labels, namespaceLabels, ports }
  }
  if (party.kind !== 'pod' && party.kind !== 'node') return { ...plain, kind: party.kind }
  const node = party.kind === 'node' ? party.node : nodeOf(cluster, party.pod)
  return { ...plain, kind: 'node', labels: node?.meta.labels ?? {}, isNodeKnown: node !== undefined }
}

/** The piece of address space that a party stands in, where ranges can match it; a party without address has none. */
function atomOf({ atoms, semantics }: PolicyWorld, { kind, ip }: Omit<PartyClass, 'id'>): string {
  if (!semantics.seesAddressOf(kind)) return ''
  if (ip === undefined) return 'none'
  return `${ip.family} ${findAtom(atoms[ip.family], ip)?.id}`
}

function textOfPort({ name, protocol, port }: NamedPort): string {
  return `${name} ${protocol} ${port}`
}

function textOfLabels({ memory }: PolicyWorld, labels: Labels): string {
  const known = memory.labelTexts.get(labels)
  if (known !== undefined) return known
  const text = JSON.stringify(Object.entries(labels).sort(([a], [b]) => compareText(a, b)))
  memory.labelTexts.set(labels, text)
  return text
}

/** Who has an address in the cluster: a node before a pod, as host-networked pods share its address, or nobody known. */
export function partyOfIp(world: PolicyWorld, ip: Ip): Party {
  const { holders } = world.memory
  if (holders.size === 0) indexHolders(world)
  return holders.get(printIp(ip)) ?? { kind: 'address', ip }
}

function indexHolders({ cluster, memory: { holders } }: PolicyWorld): void {
  const nodes = [...cluster.nodes.values()].map((node): Party => ({ kind: 'node', node }))
  const pods = [...cluster.pods.values()].filter((pod) => !hasEnded(pod)).map((pod): Party => ({ kind: 'pod', pod }))
  for (const party of [...nodes, ...pods]) {
    for (const address of addressesOf(cluster, party)) if (!holders.has(address)) holders.set(address, party)
  }
}
