/** Rules of which nobody knows whether they match: the walk is unknown where they decide, and only there. */
import { expect, test } from 'vitest'
import { service } from '../../../test/cilium/ask-maps'
import { preparePath } from '../../../test/cilium/ask-path'
import { cnp } from '../../../test/policy/ask-cilium'
import { pod } from '../../../test/policy/policy-objects'

const dnsRule = {
  toEndpoints: [{}],
  toPorts: [{ ports: [{ port: '53', protocol: 'UDP' }], rules: { dns: [{ matchPattern: '*' }] } }],
}
const toApi = { toFQDNs: [{ matchName: 'api.example.com' }], toPorts: [{ ports: [{ port: '443', protocol: 'TCP' }] }] }
const byName = (egress: readonly object[]) =>
  cnp('business/names', { endpointSelector: { matchLabels: { app: 'client' } }, egress })

test('where the proxy sees answers of DNS, a packet to an address outside is unknown at the name’s port alone', () => {
  const { walk } = preparePath([byName([toApi, dnsRule])])
  const perhaps = walk('A', '93.184.216.34:443')
  expect([perhaps.fate, perhaps.walk.request.verdict.because[0]]).toEqual([
    'unknown',
    {
      code: 'cilium.open-rule',
      sentence:
        'CiliumNetworkPolicy business/names spec.egress[0] decides here: which addresses its names have is known to the DNS cache alone, and none is given',
    },
  ])
  expect(walk('A', '93.184.216.34:80').fate).toBe('133')
  expect(walk('A', '10.244.2.30:443').fate).toBe('133')
  expect(perhaps.walk.findings.map(({ code }) => code)).toContain('maps.policy-open')
})

test('without a rule for DNS no name is learned, and where all is allowed a name changes nothing', () => {
  expect(preparePath([byName([toApi])]).walk('A', '93.184.216.34:443').fate).toBe('133')
  const open = preparePath([byName([toApi, dnsRule, { toEntities: ['world'] }])])
  expect(open.walk('A', '93.184.216.34:443').fate).toBe('allowed')
})

const server = service('business/server', {
  type: 'NodePort',
  ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }],
})

test('where kube-proxy is not replaced its rules decide, and what they do is unknown here', () => {
  const { walk } = preparePath([server], { config: { 'kube-proxy-replacement': 'false' } })
  const asked = [
    ['198.51.100.7', '192.168.1.10:30080'],
    ['A', '192.168.1.11:30080'],
    ['node-a', '10.96.0.50:80'],
  ] as const
  for (const [source, target] of asked) {
    const { fate, walk: found } = walk(source, target)
    expect([fate, found.request.verdict.because[0].code], target).toEqual(['unknown', 'cilium.kube-proxy'])
  }
  expect(walk('A', '10.96.0.50:80').fate).toBe('allowed')
  expect(walk('A', '192.168.1.10:22').fate).toBe('allowed')
})

test('S4: to a port that the ClusterIP does not have a packet goes on, and nobody is known to answer', () => {
  const found = preparePath([server]).walk('A', '10.96.0.50:81').walk.request.verdict
  expect(found.kind).toBe('allowed')
  expect(found.because.map(({ sentence }) => sentence)).toContain(
    '10.96.0.50 is an address of Service business/server, which has no port 81/TCP: nobody is known to answer there',
  )
})

test('a hostPort leads to its pod, and without kube-proxy replacement to rules that no map holds', () => {
  const one = pod('business/h', { app: 'h' }, { ip: '10.244.1.40', nodeName: 'node-a' })
  const containers = [{ name: 'main', image: 'h', ports: [{ containerPort: 80, hostPort: 8088 }] }]
  const held = { ...one, spec: { ...(one.spec as object), containers } }
  const fates = ['true', 'false'].map((word) => {
    const { walk } = preparePath([held], { config: { 'kube-proxy-replacement': word } })
    const { fate, walk: found } = walk('198.51.100.7', '192.168.1.10:8088')
    return [fate, found.request.verdict.because[0].code]
  })
  expect(fates).toEqual([
    ['allowed', 'cilium.delivered'],
    ['unknown', 'cilium.host-port'],
  ])
})
