import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { selects } from '#model/meta'
import type { Pod } from '#model/pod'
import { readFrom } from './read-from'

const { value: shop, findings } = await readFrom(['samples/shop'])

const service = (key: string) => {
  const found = shop.services.get(key)
  if (found === undefined) throw new Error(`the sample has no Service ${key}`)
  return found
}
const podsOf = (key: string): readonly Pod[] => {
  const { selector, meta } = service(key)
  const isPicked = (pod: Pod) => pod.meta.namespace === meta.namespace && selects(selector ?? {}, pod.meta.labels)
  return selector === undefined ? [] : [...shop.pods.values()].filter(isPicked)
}
const ready = (key: string) =>
  podsOf(key)
    .filter(({ isReady }) => isReady)
    .flatMap(({ podIPs }) => podIPs)

describe('the sample cluster', () => {
  test('is sound: nothing to find, nothing assumed, nothing skipped', () => {
    expect(findings).toEqual([])
    const maps = [shop.services, shop.pods, shop.nodes, shop.slices, shop.endpoints, shop.namespaces, shop.configMaps]
    expect(maps.flatMap((map) => [...map.values()]).filter(({ meta }) => meta.assumed.length > 0)).toEqual([])
    expect(shop.skippedKinds.size).toBe(0)
  })

  test('two nodes in two zones', () => {
    expect(
      [...shop.nodes.values()].map(({ meta, addresses, podCIDRs }) => [
        meta.name,
        addresses[0]?.address,
        podCIDRs,
        meta.labels['topology.kubernetes.io/zone'],
      ]),
    ).toEqual([
      ['node-a', '172.18.0.2', ['10.244.1.0/24'], 'a'],
      ['node-b', '172.18.0.3', ['10.244.2.0/24'], 'b'],
    ])
  })

  test('web: three ready pods and a canary that is not', () => {
    expect(service('shop/web')).toMatchObject({ clusterIPs: ['10.96.0.20'], ports: [{ port: 80, targetPort: 'http' }] })
    expect(service('shop/web-headless').clusterIPs).toEqual(['None'])
    expect(ready('shop/web')).toEqual(['10.244.1.5', '10.244.1.6', '10.244.2.7'])
    expect(podsOf('shop/web').find(({ isReady }) => !isReady)?.podIPs).toEqual(['10.244.2.8'])
  })

  test('empty: a selector that finds nothing', () => {
    expect(service('shop/empty').clusterIPs).toEqual(['10.96.0.40'])
    expect(podsOf('shop/empty')).toEqual([])
  })

  test('checkout: a NodePort with Local policy, ready on 172.18.0.3 alone', () => {
    expect(service('shop/checkout')).toMatchObject({
      type: 'NodePort',
      externalTrafficPolicy: 'Local',
      ports: [{ nodePort: 30080 }],
    })
    expect(
      podsOf('shop/checkout')
        .filter(({ isReady }) => isReady)
        .map(({ hostIPs }) => hostIPs),
    ).toEqual([['172.18.0.3']])
  })

  test('db: two pods with names of their own', () => {
    expect(podsOf('shop/db').map(({ hostname, subdomain }) => `${hostname}.${subdomain}`)).toEqual([
      'db-0.db',
      'db-1.db',
    ])
  })

  test('catalog: the port http has two numbers', () => {
    expect(service('shop/catalog').ports[0]?.targetPort).toBe('http')
    expect(podsOf('shop/catalog').map(({ containers }) => containers[0]?.ports[0]?.containerPort)).toEqual([8080, 9090])
  })

  test('DNS and the API server, as every cluster has them', () => {
    expect(service('kube-system/kube-dns').clusterIPs).toEqual(['10.96.0.10'])
    expect(ready('kube-system/kube-dns')).toEqual(['10.244.1.2', '10.244.2.2'])
    expect(service('default/kubernetes').clusterIPs).toEqual(['10.96.0.1'])
    expect(shop.configMaps.get('kube-system/coredns')?.data.Corefile).toContain('kubernetes cluster.local')
  })

  test('its slices hold just the pods that its Services pick', () => {
    for (const [key, { meta, clusterIPs }] of shop.services) {
      const slices = [...shop.slices.values()].filter(
        (slice) =>
          slice.meta.namespace === meta.namespace && slice.meta.labels['kubernetes.io/service-name'] === meta.name,
      )
      const addresses = slices.flatMap(({ endpoints }) => endpoints.flatMap(({ addresses }) => addresses)).sort()
      if (key !== 'default/kubernetes')
        expect(addresses, key).toEqual(
          podsOf(key)
            .flatMap(({ podIPs }) => podIPs)
            .sort(),
        )
      const isHidden = slices.every((slice) => slice.meta.labels['service.kubernetes.io/headless'] === '')
      expect(isHidden, key).toBe(clusterIPs[0] === 'None')
    }
  })

  test('opens each file with a sentence', () => {
    for (const name of [
      'catalog',
      'checkout',
      'client',
      'db',
      'empty',
      'endpoint-slices',
      'namespaces',
      'nodes',
      'system',
      'web',
    ]) {
      expect(readFileSync(`samples/shop/${name}.yaml`, 'utf8'), name).toMatch(/^# [A-Z].*\.\n/)
    }
  })
})
