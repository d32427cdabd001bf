import { describe, expect, test } from 'vitest'
import { buildFrom, type Raw, rawNode, rawPod } from '../support/raw-objects'

const node = rawNode('node-a', '172.18.0.2', { podCIDR: '10.244.1.0/24' })
const one = (rest: Raw) => buildFrom([node, rawPod('web-0', rest)])
const running = {
  phase: 'Running',
  podIP: '10.244.1.5',
  hostIP: '172.18.0.2',
  conditions: [{ type: 'Ready', status: 'True' }],
}

describe('pods of a running cluster', () => {
  test('addresses, readiness and placement are as told, and nothing is assumed', () => {
    const { pod, problems } = one({
      spec: { nodeName: 'node-a', hostname: 'web-0', subdomain: 'web' },
      status: running,
    })
    expect(problems).toEqual([])
    expect(pod('web-0')).toMatchObject({
      phase: 'Running',
      podIPs: ['10.244.1.5'],
      hostIPs: ['172.18.0.2'],
      isReady: true,
      nodeName: 'node-a',
      hostname: 'web-0',
      subdomain: 'web',
      dnsPolicy: 'ClusterFirst',
      hostNetwork: false,
      meta: { assumed: [] },
    })
  })

  test('podIPs count before podIP, in canonical form', () => {
    const status = { ...running, podIPs: [{ ip: '10.244.1.5' }, { ip: 'FD00:0:0::5' }] }
    expect(one({ spec: { nodeName: 'node-a' }, status }).pod('web-0').podIPs).toEqual(['10.244.1.5', 'fd00::5'])
  })

  test('a pod that waits for an address stays without one, and without a node', () => {
    const status = { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False' }] }
    const { pod, problems } = one({ status })
    expect(problems).toEqual([])
    expect(pod('web-0')).toMatchObject({ phase: 'Pending', podIPs: [], isReady: false, meta: { assumed: [] } })
    expect(pod('web-0')).not.toHaveProperty('nodeName')
  })

  test('a status with an address but no conditions makes an unready pod, with a finding', () => {
    const { pod, findings } = one({ spec: { nodeName: 'node-a' }, status: { podIP: '10.244.1.5' } })
    expect(pod('web-0')).toMatchObject({ isReady: false, phase: 'Running', meta: { assumed: ['status.phase'] } })
    expect(findings[0]).toMatchObject({ code: 'pod.no-ready-condition', path: 'status.conditions' })
  })

  test.each([{ conditions: [] }, { conditions: [{ type: 'Initialized', status: 'True' }] }, { conditions: null }])(
    'conditions without Ready (%j) make an unready pod too, with a finding',
    (rest) => {
      const { pod, problems } = one({ spec: { nodeName: 'node-a' }, status: { ...running, ...rest } })
      expect(pod('web-0').isReady).toBe(false)
      expect(problems).toEqual(['pod.no-ready-condition'])
    },
  )

  test.each([
    [true, true, 'true stands where text is wanted; it is read as "True"'],
    [false, false, 'false stands where text is wanted; it is read as "False"'],
    ['true', true, '"true" is none of True, False, Unknown; it is read as True'],
    [1, false, '1 is none of True, False, Unknown; it counts as False'],
  ])('a Ready condition %j is told and read as it is meant', (status, isReady, message) => {
    const conditions = [{ type: 'Ready', status }]
    const { pod, findings } = one({ spec: { nodeName: 'node-a' }, status: { ...running, conditions } })
    expect(pod('web-0').isReady).toBe(isReady)
    expect(findings[0]).toMatchObject({ severity: 'error', path: 'status.conditions[0].status', message })
  })

  test('a pod with an address but no node goes to the node whose range holds it', () => {
    const nodes = [rawNode('node-b', '172.18.0.3', { podCIDR: '10.244.2.0/24' }), node]
    const { pod } = buildFrom([
      ...nodes,
      rawPod('web-0', { status: running }),
      rawPod('web-1', { status: { ...running, podIP: '10.244.2.5', hostIP: undefined } }),
    ])
    expect(pod('web-0')).toMatchObject({ nodeName: 'node-a', meta: { assumed: ['spec.nodeName'] } })
    expect(pod('web-1').nodeName).toBe('node-b')
  })
})

describe('containers', () => {
  const containers = (...ports: unknown[]): Raw => ({
    spec: { nodeName: 'node-a', containers: [{ name: 'main', ports }] },
    status: running,
  })

  test('ports are TCP unless told, and sidecars keep their restart policy', () => {
    const spec = {
      nodeName: 'node-a',
      containers: [
        {
          name: 'main',
          ports: [
            { name: 'http', containerPort: 8080, hostPort: 80 },
            { containerPort: 53, protocol: 'UDP' },
          ],
        },
      ],
      initContainers: [{ name: 'proxy', restartPolicy: 'Always' }],
    }
    expect(one({ spec, status: running }).pod('web-0')).toMatchObject({
      containers: [
        {
          name: 'main',
          ports: [
            { name: 'http', containerPort: 8080, protocol: 'TCP', hostPort: 80 },
            { containerPort: 53, protocol: 'UDP' },
          ],
        },
      ],
      initContainers: [{ name: 'proxy', restartPolicy: 'Always', ports: [] }],
    })
  })

  test.each([
    [{ containerPort: 'http' }, 'spec.containers[0].ports[0].containerPort'],
    [{ containerPort: null }, 'spec.containers[0].ports[0].containerPort'],
    [{ name: 'http' }, 'spec.containers[0].ports[0].containerPort'],
    [{ containerPort: 80, protocol: 'QUIC' }, 'spec.containers[0].ports[0].protocol'],
  ])('%j is left out with a finding at %s', (port, path) => {
    const { pod, findings } = one(containers(port, { containerPort: 9090 }))
    expect(pod('web-0').containers[0]?.ports).toMatchObject([{ containerPort: 9090 }])
    expect(findings[0]).toMatchObject({ severity: 'error', path })
  })

  test('a port name of 70 characters is told and kept', () => {
    const name = 'p'.repeat(70)
    const { pod, findings } = one(containers({ name, containerPort: 80 }))
    expect(pod('web-0').containers[0]?.ports[0]?.name).toBe(name)
    expect(findings[0]).toMatchObject({
      code: 'manifest.bad-name',
      message: expect.stringContaining('has 70 characters, where a port name takes at most 15'),
    })
  })

  test('lists and maps of the wrong type are told, and the pod is read without them', () => {
    const { pod, findings } = one({
      spec: { containers: 'main', nodeName: 'node-a', hostNetwork: 'yes' },
      status: running,
    })
    expect(pod('web-0')).toMatchObject({ containers: [], hostNetwork: true })
    expect(findings.slice(0, 2).map(({ path, message }) => `${path}: ${message}`)).toEqual([
      'spec.containers: "main" stands where a list is wanted; it is left out',
      'spec.hostNetwork: the text "yes" is read as true',
    ])
  })
})

test.each(['010.0.0.1', '::ffff:10.0.0.1', '10.244.1', 'fe80::1%eth0', '10.244.1.0/24'])(
  'the pod address %s is left out with a finding',
  (ip) => {
    const { pod, findings } = one({ spec: { nodeName: 'node-a' }, status: { ...running, podIP: ip } })
    expect(pod('web-0').podIPs).toEqual([])
    expect(findings[0]).toMatchObject({
      code: 'manifest.bad-address',
      path: 'status.podIP',
      object: { kind: 'Pod', name: 'web-0' },
    })
  },
)

describe('dnsConfig', () => {
  test('nameservers, searches and options are read, an option with or without a value', () => {
    const dnsConfig = {
      nameservers: ['10.96.0.10', 'bad'],
      searches: ['corp.example'],
      options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }, { value: 'x' }],
    }
    const { pod, problems } = one({ spec: { nodeName: 'node-a', dnsPolicy: 'None', dnsConfig }, status: running })
    expect(problems).toEqual(['manifest.bad-address'])
    expect(pod('web-0')).toMatchObject({
      dnsPolicy: 'None',
      dnsConfig: {
        nameservers: ['10.96.0.10'],
        searches: ['corp.example'],
        options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }],
      },
    })
  })

  test('a pod without one has none', () => {
    expect(one({ spec: { nodeName: 'node-a' }, status: running }).pod('web-0')).not.toHaveProperty('dnsConfig')
  })
})
