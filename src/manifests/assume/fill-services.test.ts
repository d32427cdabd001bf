import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseIp } from '#base/ip'
import { containsIp, parsePrefix } from '#base/prefix'
import { buildFrom, type Raw, rawNode, rawService } from '../support/raw-objects'

const range = (text: string) => {
  const prefix = parsePrefix(text)?.prefix
  if (prefix === undefined) throw new Error(text)
  return prefix
}

const isIn = (text: string, ip: string | undefined): boolean => {
  const parsed = parseIp(ip ?? '')
  return parsed !== undefined && containsIp(range(text), parsed)
}

describe('ClusterIPs', () => {
  test('one is assumed, inside the usual range, and marked', () => {
    const { service, find } = buildFrom([rawService('web')])
    expect(isIn('10.96.0.0/12', service('web').clusterIPs[0])).toBe(true)
    expect(service('web').meta.assumed).toEqual(['spec.clusterIP'])
    expect(find('service.assumed-cluster-ip').message).toBe(
      '1 Service without a ClusterIP (shop/web) got assumed ones from 10.96.0.0/12',
    )
  })

  test('the well-known Services get the addresses every cluster gives them', () => {
    const named = (namespace: string, name: string): Raw => ({ ...rawService(name), metadata: { name, namespace } })
    const { cluster } = buildFrom([named('default', 'kubernetes'), named('kube-system', 'kube-dns')])
    expect(cluster.services.get('default/kubernetes')?.clusterIPs).toEqual(['10.96.0.1'])
    expect(cluster.services.get('kube-system/kube-dns')?.clusterIPs).toEqual(['10.96.0.10'])
  })

  test('existing ClusterIPs hint at another range', () => {
    const { service } = buildFrom([rawService('old', { clusterIP: '10.43.7.1' }), rawService('web')])
    expect(isIn('10.43.0.0/16', service('web').clusterIPs[0])).toBe(true)
  })

  test('a range that is given counts, and none of its addresses is given twice', () => {
    const names = Array.from({ length: 13 }, (_, index) => `s${index}`)
    const objects = [rawService('known', { clusterIP: '192.0.2.3' }), ...names.map((name) => rawService(name))]
    const { cluster, problems } = buildFrom(objects, { serviceCidrs: [range('192.0.2.0/28')] })
    const ips = [...cluster.services.values()].flatMap(({ clusterIPs }) => clusterIPs)
    expect(new Set(ips).size).toBe(14)
    expect(ips.every((ip) => isIn('192.0.2.0/28', ip))).toBe(true)
    expect(ips).not.toContain('192.0.2.0')
    expect(ips).not.toContain('192.0.2.15')
    expect(problems).toEqual([])
  })

  test('a full range is told, and the Service stays without', () => {
    const names = ['a', 'b', 'c']
    const { cluster, find } = buildFrom(
      names.map((name) => rawService(name)),
      { serviceCidrs: [range('192.0.2.0/30')] },
    )
    expect([...cluster.services.values()].map(({ clusterIPs }) => clusterIPs.length)).toEqual([1, 1, 0])
    expect(find('service.range-full')).toMatchObject({
      severity: 'error',
      object: { name: 'c' },
      message: 'no address is left in 192.0.2.0/30',
    })
  })

  test('two Services with one ClusterIP are told', () => {
    const { find } = buildFrom([
      rawService('a', { clusterIP: '10.96.0.20' }),
      rawService('b', { clusterIP: '10.96.0.20' }),
    ])
    expect(find('service.cluster-ip-taken')).toMatchObject({
      message: 'the ClusterIP 10.96.0.20 is that of Service shop/a too',
      object: { name: 'b' },
    })
  })

  test('neither the order of objects nor strangers move an address', () => {
    const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,8}$/), { minLength: 2, maxLength: 30 })
    fc.assert(
      fc.property(names, fc.nat(), (all, split) => {
        const ipsOf = (chosen: readonly string[]) => {
          const { cluster } = buildFrom(chosen.map((name) => rawService(name)))
          return new Map([...cluster.services].map(([key, { clusterIPs }]) => [key, clusterIPs[0]]))
        }
        const whole = ipsOf(all)
        expect(ipsOf([...all].reverse())).toEqual(whole)
        expect(new Set(whole.values()).size).toBe(all.length)
        for (const [key, ip] of ipsOf(all.slice(split % all.length))) expect(whole.get(key)).toBe(ip)
      }),
      { seed: 4, numRuns: 30, verbose: true },
    )
  })
})

describe('families', () => {
  const dualNode = rawNode('node-a', '172.18.0.2', { podCIDRs: ['10.244.1.0/24', 'fd00:10:244:1::/64'] })
  const of = (spec: Raw, ...others: readonly Raw[]) => buildFrom([rawService('web', spec), ...others]).service('web')

  test.each([
    ['nothing asked, nothing known', {}, [], ['ipv4']],
    ['PreferDualStack in a cluster of one family', { ipFamilyPolicy: 'PreferDualStack' }, [], ['ipv4']],
    ['PreferDualStack in a cluster of two', { ipFamilyPolicy: 'PreferDualStack' }, [dualNode], ['ipv4', 'ipv6']],
    ['RequireDualStack', { ipFamilyPolicy: 'RequireDualStack' }, [], ['ipv4', 'ipv6']],
    [
      'RequireDualStack with IPv6 first',
      { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6'] },
      [],
      ['ipv6', 'ipv4'],
    ],
    ['IPv6 asked for', { ipFamilies: ['IPv6'] }, [], ['ipv6']],
    ['a cluster of IPv6 alone', {}, [rawService('old', { clusterIP: 'fd00:10:96::1' })], ['ipv6']],
    ['a node range of IPv6 alone', {}, [rawNode('node-a', '172.18.0.2', { podCIDR: 'fd00:10:244:1::/64' })], ['ipv6']],
  ] as const)('%s', (_, spec, others, families) => {
    const service = of(spec, ...others)
    expect(service.ipFamilies).toEqual(families)
    expect(service.clusterIPs.map((ip) => (ip.includes(':') ? 'ipv6' : 'ipv4'))).toEqual(families)
    expect(service.meta.assumed).toEqual(['spec.clusterIP'])
  })

  test('a Service that a server has kept stays as it is', () => {
    const kept = rawService('web', { clusterIP: '10.96.0.20', ipFamilyPolicy: 'PreferDualStack' })
    const { service } = buildFrom([{ ...kept, metadata: { name: 'web', namespace: 'shop', uid: 'u' } }, dualNode])
    expect(service('web')).toMatchObject({ clusterIPs: ['10.96.0.20'], ipFamilies: ['ipv4'], meta: { assumed: [] } })
  })

  test('a second address is added to a first that is told', () => {
    const service = of({ clusterIP: '10.96.0.20', ipFamilyPolicy: 'RequireDualStack' })
    expect(service.clusterIPs[0]).toBe('10.96.0.20')
    expect(isIn('fd00:10:96::/112', service.clusterIPs[1])).toBe(true)
    expect(service.meta.assumed).toEqual(['spec.clusterIPs'])
  })
})

describe('node ports', () => {
  const portsOf = (spec: Raw) => buildFrom([rawService('web', { clusterIP: '10.96.0.20', ...spec })]).service('web')

  test('a NodePort Service gets them in the usual range, marked one by one', () => {
    const ports = [
      { name: 'a', port: 80, nodePort: 30080 },
      { name: 'b', port: 81 },
    ]
    const service = portsOf({ type: 'NodePort', ports })
    expect(service.ports[0]?.nodePort).toBe(30080)
    expect(service.ports[1]?.nodePort).toBeGreaterThanOrEqual(30086)
    expect(service.ports[1]?.nodePort).toBeLessThanOrEqual(32767)
    expect(service.meta.assumed).toEqual(['spec.ports[1].nodePort'])
  })

  test('a ClusterIP Service gets none, nor does a LoadBalancer that declines them', () => {
    expect(portsOf({}).ports[0]?.nodePort).toBe(0)
    expect(portsOf({ type: 'LoadBalancer', allocateLoadBalancerNodePorts: false }).ports[0]?.nodePort).toBe(0)
    expect(portsOf({ type: 'LoadBalancer' }).ports[0]?.nodePort).toBeGreaterThan(30000)
  })

  test('one number served over two protocols has one node port', () => {
    const ports = [
      { name: 'dns', port: 53, protocol: 'UDP' },
      { name: 'dns-tcp', port: 53 },
    ]
    const service = portsOf({ type: 'NodePort', ports })
    expect(service.ports[0]?.nodePort).toBe(service.ports[1]?.nodePort)
  })

  test('a LoadBalancer with externalTrafficPolicy Local gets a health check port', () => {
    const service = portsOf({ type: 'LoadBalancer', externalTrafficPolicy: 'Local' })
    expect(service.healthCheckNodePort).toBeGreaterThan(30000)
    expect(service.meta.assumed).toEqual(['spec.ports[0].nodePort', 'spec.healthCheckNodePort'])
    expect(portsOf({ type: 'NodePort', externalTrafficPolicy: 'Local' }).healthCheckNodePort).toBe(0)
  })

  test('the ports of many Services are all different, until none is left', () => {
    const objects = Array.from({ length: 2770 }, (_, index) =>
      rawService(`s${index}`, { type: 'NodePort', clusterIP: `10.96.${index >> 8}.${index & 255}` }),
    )
    const { cluster, problems } = buildFrom(objects)
    const ports = [...cluster.services.values()].map(({ ports }) => ports[0]?.nodePort ?? 0).filter((port) => port > 0)
    expect(new Set(ports).size).toBe(2768)
    expect(problems).toEqual(['service.range-full', 'service.range-full'])
  })

  test('two Services with one node port are told', () => {
    const spec = { type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] }
    const { find } = buildFrom([rawService('a', spec), rawService('b', spec)])
    expect(find('service.node-port-taken').message).toBe('the node port 30080/TCP is held by Service shop/a too')
  })
})
