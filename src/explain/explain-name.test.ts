/** What cluster DNS answers for a Service. */
import { expect, test } from 'vitest'
import {
  codesOf,
  explain,
  layerIn,
  type Raw,
  rawPod,
  rawService,
  rawSlice,
  twoNodes,
  twoPods,
} from '../../test/explain/explain-objects'

const headless = { clusterIP: 'None', clusterIPs: ['None'] }

test('a cluster IP is the answer whatever the endpoints do, in each family', () => {
  const dual = { clusterIPs: ['10.96.0.20', 'fd00::20'], ipFamilies: ['IPv4', 'IPv6'] }
  const { facts } = layerIn(explain([...twoNodes, ...twoPods, rawService(dual)]), 'name')
  expect(facts).toEqual(['web.shop.svc.cluster.local A 10.96.0.20', 'web.shop.svc.cluster.local AAAA fd00::20'])
})

test('another cluster domain is another name', () => {
  const explanation = explain([...twoNodes, ...twoPods, rawService()], { clusterDomain: 'corp.internal' })
  expect(layerIn(explanation, 'name').facts[0]).toMatch(/^web\.shop\.svc\.corp\.internal A /)
})

test('a headless name answers with ready endpoints alone', () => {
  const unready = rawPod('web-2', '10.244.1.6', { isReady: false })
  const { facts } = layerIn(explain([...twoNodes, ...twoPods, unready, rawService(headless)]), 'name')
  expect(facts).toEqual([
    'web.shop.svc.cluster.local A 10.244.1.5 and 10.244.2.7: Service shop/web has 2 ready endpoints',
  ])
})

test('publishNotReadyAddresses lets the name answer with pods that are not ready', () => {
  const unready = rawPod('web-2', '10.244.1.6', { isReady: false })
  const spec = { ...headless, publishNotReadyAddresses: true }
  const explanation = explain([...twoNodes, ...twoPods, unready, rawService(spec)])
  expect(codesOf(explanation)).toEqual(['explain.name-answers-not-ready'])
  expect(explanation.findings[0]?.evidence).toEqual([
    'pod web-2 (10.244.1.6): ready=true serving=false terminating=false',
  ])
})

test('an endpoint without conditions counts as ready', () => {
  const slice = rawSlice('web-x', [{ addresses: ['192.0.2.10'] }])
  const { facts } = layerIn(explain([...twoNodes, rawService({ ...headless, selector: undefined }), slice]), 'name')
  expect(facts[0]).toBe('web.shop.svc.cluster.local A 192.0.2.10: Service shop/web has 1 ready endpoint')
})

function dnsServer(isReady: boolean): readonly Raw[] {
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'kube-dns', namespace: 'kube-system', labels: { 'k8s-app': 'kube-dns' } },
    spec: { clusterIP: '10.96.0.10', selector: { 'k8s-app': 'kube-dns' }, ports: [{ port: 53, protocol: 'UDP' }] },
  }
  const pod = rawPod('coredns-0', '10.244.1.2', { labels: { 'k8s-app': 'kube-dns' }, isReady })
  return [service, { ...pod, metadata: { ...(pod.metadata as Raw), namespace: 'kube-system' } }]
}

test('the DNS server of the cluster is looked at too', () => {
  const objects = [...twoNodes, ...twoPods, rawService()]
  expect(layerIn(explain([...objects, ...dnsServer(true)]), 'name').facts[1]).toBe(
    'names are resolved by kube-system/kube-dns at 10.96.0.10, 1 ready endpoint',
  )
  const explanation = explain([...objects, ...dnsServer(false)])
  expect(codesOf(explanation)).toEqual(['explain.dns-without-endpoints'])
  expect(explanation.findings[0]?.object).toEqual({ kind: 'Service', namespace: 'kube-system', name: 'kube-dns' })
})

test('nothing is said of a DNS server whose pods were not read', () => {
  const [service] = dnsServer(true)
  expect(codesOf(explain([...twoNodes, ...twoPods, rawService(), service ?? {}]))).toEqual([])
})

const corefile = (text: string): Raw => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'coredns', namespace: 'kube-system' },
  data: { Corefile: text },
})

test('the zone is that of the Corefile, and a given one that differs is told', () => {
  const objects = [...twoNodes, ...twoPods, rawService(), corefile('.:53 {\n kubernetes corp.internal\n}\n')]
  expect(layerIn(explain(objects), 'name').facts[0]).toBe('web.shop.svc.corp.internal A 10.96.0.20')
  const codes = codesOf(explain(objects, { clusterDomain: 'cluster.local' }))
  expect(codes).toEqual(['explain.name-without-answer', 'dns.cluster-domain-differs'])
})

test('a Corefile that hides the namespace leaves the Service without a name', () => {
  const text = '.:53 {\n kubernetes cluster.local {\n  namespaces prod\n }\n}\n'
  const { findings } = explain([...twoNodes, ...twoPods, rawService(), corefile(text)])
  expect(findings.map(({ code }) => code)).toEqual(['explain.name-without-answer'])
  expect(findings[0]?.evidence).toEqual(['web.shop.svc.cluster.local A: NXDOMAIN (plugin kubernetes)'])
})

test.each([
  ['outside the zone', 'db.example.org', []],
  ['with a trailing dot', 'web.shop.svc.cluster.local.', ['explain.external-name-inside']],
  ['an address', '2001:db8::1', ['explain.external-name-is-address']],
  ['the zone itself', 'cluster.local', ['explain.external-name-unknown']],
])('an externalName %s', (_, externalName, codes) => {
  const alias = {
    ...rawService(),
    metadata: { name: 'alias', namespace: 'shop' },
    spec: { type: 'ExternalName', externalName },
  }
  const explanation = explain([...twoNodes, ...twoPods, rawService(), alias], { key: 'shop/alias' })
  expect(codesOf(explanation).filter((code) => code.startsWith('explain.'))).toEqual(codes)
})

test.each([['web.shop'], ['web.shop.'], ['web'], ['web.shop.svc']])(
  'externalName %s is short for a Service',
  (externalName) => {
    const alias = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'alias', namespace: 'shop' },
      spec: { type: 'ExternalName', externalName },
    }
    const explanation = explain([...twoNodes, ...twoPods, rawService(), alias], { key: 'shop/alias' })
    expect(codesOf(explanation)).toEqual(['explain.external-name-short'])
    expect(explanation.findings[0]?.hint).toBe('write the whole name: web.shop.svc.cluster.local')
  },
)
