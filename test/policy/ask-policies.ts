/** Objects in, answers out: parties by short names (`x/a`, `node n1`, `1.2.3.4`), connections as `TCP 80`. */
import type { Finding } from '#base/finding'
import { parseIp } from '#base/ip'
import type { PolicyProtocol } from '#compile/policy/policy-rule'
import { parseCluster } from '#manifests/parse-cluster'
import type { Cluster } from '#model/cluster'
import type { DirectionAnswer, PolicyAnswer } from '#trace/policy/answer'
import { decide } from '#trace/policy/decide'
import { evaluate } from '#trace/policy/evaluate'
import { kubernetesSemantics } from '#trace/policy/k8s-semantics'
import type { Party } from '#trace/policy/party'
import { commonFamily, nearnessOf } from '#trace/policy/party-facts'
import { classOf, type PolicyWorld, preparePolicies } from '#trace/policy/world'
import type { Raw } from './policy-objects'

export type Asked = {
  readonly world: PolicyWorld
  readonly cluster: Cluster
  readonly findings: readonly Finding[]
  readonly answer: (source: string, target: string, connection: string) => PolicyAnswer
  /** `yes`, `no` or `unknown`, the same from the explaining and from the fast way. */
  readonly may: (source: string, target: string, connection: string) => 'yes' | 'no' | 'unknown'
  readonly party: (name: string) => Party
}

export function askPolicies(objects: readonly Raw[]): Asked {
  const items = objects
  const text = JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
  const { value: cluster, findings } = parseCluster(text, 'f.json')
  const world = preparePolicies(cluster, { semantics: kubernetesSemantics })
  const party = (name: string): Party => findParty(cluster, name)
  const answer: Asked['answer'] = (source, target, connection) => {
    const [protocol = '', port] = connection.split(' ')
    const rest = port === undefined ? {} : { port: Number(port) }
    return evaluate(world, {
      source: party(source),
      target: party(target),
      protocol: protocol as PolicyProtocol,
      ...rest,
    })
  }
  const may: Asked['may'] = (source, target, connection) => {
    const { allowed } = answer(source, target, connection)
    const [protocol = '', port = '0'] = connection.split(' ')
    const [from, to] = [party(source), party(target)]
    const family = commonFamily(cluster, from, to)
    const fast = decide(world, {
      source: classOf(world, from, family).id,
      target: classOf(world, to, family).id,
      protocol: protocol as PolicyProtocol,
      port: Number(port),
      nearness: nearnessOf(from, to),
    })
    const told = allowed === null ? 'unknown' : allowed ? 'allowed' : 'denied'
    const isEnded = [from, to].some(({ kind }) => kind === 'pod') && told === 'denied'
    if (!isEnded && fast !== told) throw new Error(`decide says ${fast}, and evaluate ${told}`)
    return allowed === null ? 'unknown' : allowed ? 'yes' : 'no'
  }
  return { world, cluster, findings, answer, may, party }
}

function findParty(cluster: Cluster, name: string): Party {
  const ip = parseIp(name)
  if (ip !== undefined) return { kind: 'address', ip }
  const pod = cluster.pods.get(name)
  if (pod !== undefined) return { kind: 'pod', pod }
  const node = cluster.nodes.get(name.replace('node ', ''))
  if (node === undefined) throw new Error(`there is no ${name}`)
  return { kind: 'node', node }
}

export function sentencesOf({ because }: DirectionAnswer): string {
  return because.map(({ sentence }) => sentence).join('\n')
}
