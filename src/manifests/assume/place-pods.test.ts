import { describe, expect, test } from 'vitest'
import { parsePrefix } from '#base/prefix'
import { buildFrom, type Raw, rawNode, rawPod, rawRunningPod, rawService, rawWorkload } from '../support/raw-objects'

const nodeA = rawNode('node-a', '172.18.0.2', { podCIDR: '10.244.1.0/24' })
const nodeB = rawNode('node-b', '172.18.0.3', { podCIDR: '10.244.2.0/24' })
const assumedStatus = ['status.phase', 'status.conditions', 'status.podIPs', 'status.hostIPs']

describe('pods written without a status', () => {
  test('run and are ready, on nodes in turn, with addresses of their ranges', () => {
    const { pods, find } = buildFrom([nodeA, nodeB, rawPod('a'), rawPod('b'), rawPod('c')])
    expect(pods().map(({ podIPs, hostIPs, nodeName }) => [podIPs, hostIPs, nodeName])).toEqual([
      [['10.244.1.2'], ['172.18.0.2'], 'node-a'],
      [['10.244.2.2'], ['172.18.0.3'], 'node-b'],
      [['10.244.1.3'], ['172.18.0.2'], 'node-a'],
    ])
    expect(pods()[0]).toMatchObject({
      phase: 'Running',
      isReady: true,
      meta: { assumed: ['spec.nodeName', ...assumedStatus] },
    })
    expect(find('pod.assumed-status').message).toBe(
      '3 pods without a status are assumed to run and be ready on node-a and node-b, with assumed addresses',
    )
  })

  test('an empty status is none, as kubectl create --dry-run writes it', () => {
    expect(buildFrom([nodeA, rawPod('a', { status: {} })]).pod('a').podIPs).toEqual(['10.244.1.2'])
  })

  test('a node that is named is kept, and not marked', () => {
    const { pod } = buildFrom([nodeA, nodeB, rawPod('a', { spec: { nodeName: 'node-b' } })])
    expect(pod('a')).toMatchObject({ nodeName: 'node-b', podIPs: ['10.244.2.2'], meta: { assumed: assumedStatus } })
  })

  test('a named node that the input does not hold leaves the pod waiting', () => {
    const { pod, find } = buildFrom([nodeA, rawPod('a', { spec: { nodeName: 'node-x' } })])
    expect(pod('a')).toMatchObject({ phase: 'Pending', podIPs: [] })
    expect(find('pod.no-node-fits').message).toBe('the pod names the node node-x, which the input does not hold')
  })

  test('hostNetwork pods have the addresses of their node', () => {
    const { pod } = buildFrom([nodeA, rawPod('a', { spec: { hostNetwork: true } })])
    expect(pod('a').podIPs).toEqual(['172.18.0.2'])
  })

  test('hostNetwork pods of a node without an address get none, with a finding', () => {
    const { pod, find } = buildFrom([rawNode('node-a', ''), rawPod('a', { spec: { hostNetwork: true } })])
    expect(pod('a')).toMatchObject({ podIPs: [], isReady: false })
    expect(find('pod.no-address').message).toBe('the pod gets no address, as node-a has none')
  })

  test('addresses that others hold are passed over', () => {
    const { pod } = buildFrom([nodeA, rawRunningPod('old', '10.244.1.2', { nodeName: 'node-a' }), rawPod('new')])
    expect(pod('new').podIPs).toEqual(['10.244.1.3'])
  })

  test('a cluster of two families gives each pod two addresses', () => {
    const service = rawService('web', { ipFamilyPolicy: 'RequireDualStack' })
    const { pod, node } = buildFrom([service, rawPod('a')])
    expect(pod('a').podIPs).toEqual(['10.244.1.2', 'fd00:10:244:1::2'])
    expect(node('node-a').podCIDRs).toEqual(['10.244.1.0/24', 'fd00:10:244:1::/64'])
    expect(pod('a').hostIPs).toEqual(['172.18.0.2', 'fd00:172:18::2'])
  })
})

describe('what the scheduler asks', () => {
  const control = rawNode('control', '172.18.0.9', {
    taints: [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }],
    labels: { role: 'control', cores: '8' },
  })
  const placed = (spec: Raw) => buildFrom([control, nodeA, rawPod('a', { spec })]).pod('a').nodeName
  const affinity = (...matchExpressions: readonly Raw[]): Raw => ({
    tolerations: [{ operator: 'Exists' }],
    affinity: {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] } },
    },
  })

  test.each([
    ['nothing', {}, 'node-a'],
    ['a label of a tainted node', { nodeSelector: { role: 'control' } }, undefined],
    [
      'that label, and the taint tolerated',
      {
        nodeSelector: { role: 'control' },
        tolerations: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists' }],
      },
      'control',
    ],
    [
      'a toleration of another effect',
      { nodeSelector: { role: 'control' }, tolerations: [{ operator: 'Exists', effect: 'NoExecute' }] },
      undefined,
    ],
    ['affinity In', affinity({ key: 'role', operator: 'In', values: ['control'] }), 'control'],
    ['affinity NotIn', affinity({ key: 'role', operator: 'NotIn', values: ['control'] }), 'node-a'],
    ['affinity Exists', affinity({ key: 'role', operator: 'Exists' }), 'control'],
    ['affinity DoesNotExist', affinity({ key: 'role', operator: 'DoesNotExist' }), 'node-a'],
    ['affinity Gt', affinity({ key: 'cores', operator: 'Gt', values: ['4'] }), 'control'],
    ['affinity Lt', affinity({ key: 'cores', operator: 'Lt', values: ['4'] }), undefined],
    ['an empty term', affinity(), undefined],
  ])('%s', (_, spec, node) => {
    expect(placed(spec)).toBe(node)
  })

  test('a pod that fits no node waits, with a finding', () => {
    const { pod, find } = buildFrom([nodeA, rawPod('a', { spec: { nodeSelector: { disk: 'ssd' } } })])
    expect(pod('a')).toMatchObject({ phase: 'Pending', podIPs: [], isReady: false })
    expect(find('pod.no-node-fits')).toMatchObject({ severity: 'warning', object: { name: 'a' } })
  })

  test('assumed nodes are taken to have whatever is asked', () => {
    expect(buildFrom([rawPod('a', { spec: { nodeSelector: { disk: 'ssd' } } })]).pod('a').nodeName).toBe('node-a')
  })
})

describe('nodes of an input without any', () => {
  test('two are made up when none is named', () => {
    const { cluster, node, find } = buildFrom([rawService('web')])
    expect([...cluster.nodes.keys()]).toEqual(['node-a', 'node-b'])
    expect(node('node-b')).toMatchObject({
      addresses: [{ address: '172.18.0.3' }, {}],
      podCIDRs: ['10.244.2.0/24'],
      isReady: true,
      meta: { assumed: ['*'] },
    })
    expect(find('cluster.assumed-nodes').message).toBe(
      'the input has no Node, so node-a and node-b, made up, are assumed',
    )
  })

  test('those that pods name have the addresses that pods tell', () => {
    const status = {
      podIP: '10.20.3.5',
      hostIP: '192.0.2.7',
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True' }],
    }
    const { cluster, node } = buildFrom([rawPod('a', { spec: { nodeName: 'west-1' }, status })])
    expect([...cluster.nodes.keys()]).toEqual(['west-1'])
    expect(node('west-1')).toMatchObject({
      addresses: [{ type: 'InternalIP', address: '192.0.2.7' }, { type: 'Hostname' }],
      podCIDRs: ['10.20.3.0/24'],
    })
  })

  test('blocks in which pods of several nodes were seen are nobody’s', () => {
    const pods = ['a', 'b'].map((name, index) =>
      rawRunningPod(name, `10.20.3.${5 + index}`, { nodeName: `node-${name}` }),
    )
    expect(buildFrom(pods).node('node-a').podCIDRs).toEqual(['10.244.1.0/24'])
  })
})

describe('ranges', () => {
  const range = (text: string) => [parsePrefix(text)?.prefix].flatMap((prefix) => prefix ?? [])

  test('a node without one gets the next free block, marked', () => {
    const bare = rawNode('node-0', '172.18.0.9')
    const { node, pod } = buildFrom([bare, nodeA, rawPod('a')])
    expect(pod('a').podIPs).toEqual(['10.244.2.2'])
    expect(node('node-0')).toMatchObject({ podCIDRs: ['10.244.2.0/24'], meta: { assumed: ['spec.podCIDRs'] } })
    expect(node('node-a').meta.assumed).toEqual([])
  })

  test('the pool may be given', () => {
    const { cluster } = buildFrom([rawWorkload('Deployment', 'web', { replicas: 2 })], {
      podCidrs: range('192.168.0.0/16'),
    })
    expect([...cluster.pods.values()].flatMap(({ podIPs }) => podIPs)).toEqual(['192.168.0.2', '192.168.1.2'])
  })

  test('a full block is followed by a free one, and every address is different', () => {
    const { cluster, problems } = buildFrom([nodeA, rawWorkload('Deployment', 'web', { replicas: 600 })])
    const ips = [...cluster.pods.values()].flatMap(({ podIPs }) => podIPs)
    expect(new Set(ips).size).toBe(600)
    expect(ips.filter((ip) => ip.startsWith('10.244.1.'))).toHaveLength(253)
    expect(problems).toEqual([])
  })

  test('a pool that is used up is told, and such pods stay without an address', () => {
    const { cluster, find } = buildFrom([rawWorkload('Deployment', 'web', { replicas: 300 })], {
      podCidrs: range('10.0.0.0/24'),
    })
    const without = [...cluster.pods.values()].filter(({ podIPs }) => podIPs.length === 0)
    expect(without).toHaveLength(300 - 2 * 125)
    expect(without.every(({ isReady }) => !isReady)).toBe(true)
    expect(find('pod.no-address').message).toBe('the pod gets no address, as 10.0.0.0/24 is used up')
  })
})
