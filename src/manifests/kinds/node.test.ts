import { describe, expect, test } from 'vitest'
import { buildFrom, type Raw } from '../support/raw-objects'

function one(rest: Raw) {
  const { node, problems, findings } = buildFrom([
    { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-a' }, ...rest },
  ])
  return { node: node('node-a'), problems, findings }
}

describe('nodes', () => {
  test('addresses, ranges, CPU and readiness are as told', () => {
    const addresses = [
      { type: 'InternalIP', address: '172.18.0.2' },
      { type: 'InternalIP', address: 'FD00:172:18::2' },
      { type: 'Hostname', address: 'node-a' },
      { type: 'ExternalDNS', address: 'a.example.org' },
    ]
    const status = { addresses, allocatable: { cpu: '3920m' }, conditions: [{ type: 'Ready', status: 'True' }] }
    expect(
      one({ spec: { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.0/24', 'fd00:10:244:1::/64'] }, status }),
    ).toMatchObject({
      node: {
        addresses: [addresses[0], { type: 'InternalIP', address: 'fd00:172:18::2' }, addresses[2], addresses[3]],
        podCIDRs: ['10.244.1.0/24', 'fd00:10:244:1::/64'],
        allocatableMilliCpu: 3920,
        isReady: true,
        meta: { namespace: '', assumed: [] },
      },
      problems: [],
    })
  })

  test.each([
    ['4', 4000],
    [4, 4000],
    ['1.5', 1500],
    ['250m', 250],
  ])('%j CPU is %d thousandths', (cpu, milli) => {
    expect(one({ status: { allocatable: { cpu } } }).node.allocatableMilliCpu).toBe(milli)
  })

  test('podCIDR alone is enough, host bits are told, and a bad range is left out', () => {
    expect(one({ spec: { podCIDR: '10.244.1.0/24' } }).node.podCIDRs).toEqual(['10.244.1.0/24'])
    const { node, problems } = one({ spec: { podCIDRs: ['10.244.1.7/24', '10.244.1.0'] } })
    expect(node.podCIDRs).toEqual(['10.244.1.0/24'])
    expect(problems).toEqual(['manifest.host-bits', 'manifest.bad-cidr'])
  })

  test('bad addresses and amounts are told and left out', () => {
    const status = {
      addresses: [{ type: 'InternalIP', address: 'node-a' }, { type: 'InternalIP' }],
      allocatable: { cpu: 'many' },
    }
    const { node, findings } = one({ status })
    expect(node).toMatchObject({ addresses: [], isReady: false })
    expect(findings.map(({ path }) => path)).toEqual(['status.addresses[0].address', 'status.allocatable.cpu'])
  })

  test('a Ready condition without quotes is told and read as it is meant; an amount of the wrong type is told', () => {
    const status = { conditions: [{ type: 'Ready', status: true }], allocatable: { cpu: [4] } }
    const { node, findings } = one({ status })
    expect(node.isReady).toBe(true)
    expect(node).not.toHaveProperty('allocatableMilliCpu')
    expect(findings.map(({ path }) => path)).toEqual(['status.conditions[0].status', 'status.allocatable.cpu'])
  })

  test('an empty status is none', () => {
    expect(one({ status: {} }).node.meta.assumed).toContain('status.addresses')
  })

  test('a node written without a status is assumed ready, with an address and the labels of a kubelet', () => {
    const { node } = one({ metadata: { name: 'node-a', labels: { disk: 'ssd' } } })
    expect(node).toMatchObject({
      isReady: true,
      addresses: [
        { type: 'InternalIP', address: '172.18.0.2' },
        { type: 'Hostname', address: 'node-a' },
      ],
      meta: {
        labels: { disk: 'ssd', 'kubernetes.io/hostname': 'node-a', 'kubernetes.io/os': 'linux' },
        assumed: ['status.conditions', 'status.addresses', 'metadata.labels'],
      },
    })
  })
})
