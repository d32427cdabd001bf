/** Dumps of every form against the objects: nothing differs where nothing does, and each difference is told with its object. */
import { describe, expect, test } from 'vitest'
import type { DumpedMap } from '#compile/cilium/dumped-map'
import { parseDump } from '#compile/cilium/parse-dump'
import { mapJson, mapRawJson, printMapRaw, printMapText } from '#compile/cilium/print-maps'
import { ciliumVersions } from '#model/cilium-version'
import { type AskedMaps, askMaps, egressPolicy, service, worldConfig } from '../../../test/cilium/ask-maps'
import { cnp } from '../../../test/policy/ask-cilium'
import { node } from '../../../test/policy/policy-objects'
import { diffMaps } from './diff-maps'

const objects = [
  { ...node('node-b', '192.168.1.11'), spec: { podCIDRs: ['10.244.2.0/24'] } },
  node('node-gw', '192.168.1.20', { egress: 'true' }),
  egressPolicy(),
  service('business/server', {
    type: 'NodePort',
    externalTrafficPolicy: 'Local',
    ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }],
  }),
  cnp('business/server', {
    endpointSelector: { matchLabels: { app: 'server' } },
    ingress: [
      {
        fromEndpoints: [{ matchLabels: { app: 'client' } }],
        toPorts: [{ ports: [{ port: '8080', endPort: 8090, protocol: 'TCP' }] }],
      },
      { fromCIDR: ['198.51.100.0/24'] },
    ],
    ingressDeny: [{ fromEndpoints: [{ matchLabels: { ver: 'v2' } }] }],
  }),
]
const config = {
  ...worldConfig,
  'enable-ip-masq-agent': 'true',
  'bpf-lb-algorithm': 'maglev',
  'bpf-lb-maglev-table-size': '251',
}
const asked = askMaps(objects, { config })

const forms: Readonly<Record<string, (map: DumpedMap) => string>> = {
  text: printMapText,
  JSON: (map) => JSON.stringify(mapJson(map), undefined, 2),
  'raw text': printMapRaw,
  'raw JSON': (map) => JSON.stringify(mapRawJson(map)),
  'a file of a sysdump': (map) => `# ${map.layout.command}\n\n\`\`\`\n${printMapText(map)}\`\`\`\n`,
  'raw text in upper case': (map) =>
    printMapRaw(map).replaceAll(/ [0-9a-f]{2}(?=[ \n])/g, (byte) => byte.toUpperCase()),
}

const compared = [
  'lxc',
  'ipcache',
  'policy',
  'services',
  'backends',
  'reverse_nat',
  'egress_gw',
  'ipmasq',
  'tunnel_map',
  'maglev',
  'affinity_match',
  'node_map',
]

function filesOf(one: AskedMaps, print: (map: DumpedMap) => string) {
  return one.dumped
    .filter(
      ({ layout, rows }) =>
        rows.length > 0 && compared.some((part) => layout.name.includes(part)) && layout.type !== 'programArray',
    )
    .map((map) => ({ file: `dump/${map.layout.name}`, text: print(map) }))
}

function diff(files: readonly { readonly file: string; readonly text: string }[], one: AskedMaps = asked) {
  const { world, settings } = one.maps
  const dump = parseDump(files)
  const { findings } = diffMaps(world.cluster, dump.maps, {
    node: 'node-a',
    slices: world.slices,
    cilium: { version: settings.policy.version },
  })
  return {
    maps: dump.maps,
    reading: dump.findings,
    findings,
    texts: findings.map(({ code, message }) => `${code}: ${message}`),
  }
}

describe.each(ciliumVersions)('of version %s', (version) => {
  const own = askMaps(objects, { config, version })
  test.each(Object.keys(forms))('maps as %s do not differ from the objects they come from', (form) => {
    // As bytes the outer map of Maglev’s holds ids of inner maps alone.
    const files = filesOf(own, forms[form] ?? printMapText).filter(
      ({ file }) => !(form.startsWith('raw') && file.includes('maglev')),
    )
    const { maps, texts, reading } = diff(files, own)
    expect(reading).toEqual([])
    expect(maps.length).toBe(files.length)
    expect(texts).toEqual([])
  })
})

function changed(name: string, edit: (text: string) => string, print = printMapText) {
  return diff([{ file: `dump/${name}`, text: edit(print(asked.map(name))) }])
}

test('a row that is gone is missing, with the object that implies it', () => {
  const { findings, texts } = changed('cilium_ipcache_v2', (text) => text.replace(/^10\.244\.2\.30.*\n/m, ''))
  expect(texts).toEqual([
    'maps-diff.row-missing: 10.244.2.30/32 is missing from the ipcache (identity 1003, node 192.168.1.11)',
  ])
  expect(findings[0]?.object).toEqual({ kind: 'Pod', namespace: 'business', name: 'c' })
})

test('an address behind another node, and one with another identity', () => {
  const { texts } = changed('cilium_ipcache_v2', (text) =>
    text
      .replace(/(10\.244\.2\.30.*tunnelendpoint=)\S+/, '$1192.168.1.20')
      .replace(/(10\.244\.1\.20\/32 +identity=)\d+/, '$19999'),
  )
  expect(texts).toEqual([
    'maps-diff.wrong-identity: 10.244.1.20/32 of the ipcache has identity 9999, where 1002 is implied',
    'maps-diff.wrong-node: 10.244.2.30/32 of the ipcache has node 192.168.1.20, where 192.168.1.11 is implied',
  ])
})

test('a row that nothing implies is stale', () => {
  const { texts } = changed(
    'cilium_ipcache_v2',
    (text) => `${text}10.244.2.99/32      identity=1003 encryptkey=0 tunnelendpoint=192.168.1.11 flags=hastunnel\n`,
  )
  expect(texts).toEqual([
    'maps-diff.row-stale: 10.244.2.99/32 stands in the ipcache (identity 1003, node 192.168.1.11), and nothing implies it',
  ])
})

test('a backend that is no endpoint is stale, and one that is not there is missing', () => {
  const { texts } = changed('cilium_lb4_services_v2', (text) =>
    text.replace(/(10\.96\.0\.50.*)10\.244\.2\.30:8080/, '$110.244.2.77:8080'),
  )
  expect(texts).toEqual([
    'maps-diff.stale-backend: 10.96.0.50:80/TCP sends to 10.244.2.77:8080/TCP, which is no ready endpoint of the Service',
    'maps-diff.backend-missing: 10.96.0.50:80/TCP does not send to 10.244.2.30:8080/TCP, which is a ready endpoint of the Service',
  ])
})

test('an entry of a policy map that is gone is told with its rule, one too many as well', () => {
  const name = asked.dumped.find(({ layout }) => layout.holds.includes('business/b'))?.layout.name ?? ''
  const { findings, texts } = changed(name, (text) => text.replace('8088-8089/TCP', '9999/TCP'))
  expect(texts.map((one) => one.split(' (')[0])).toEqual([
    'maps-diff.policy-missing: Ingress 1001 8088-8089/TCP is missing from the policy map of business/b',
    'maps-diff.policy-extra: Ingress 1001 9999/TCP stands in the policy map of business/b',
  ])
  expect(findings[0]).toMatchObject({
    object: { kind: 'CiliumNetworkPolicy', name: 'server' },
    path: 'spec.ingress[0]',
  })
})

test('traffic through another gateway', () => {
  const { texts } = changed('cilium_egress_gw_policy_v4', (text) => text.replace('192.168.1.20', '192.168.1.11'))
  expect(texts[0]).toContain('maps-diff.egress-differs: 10.244.1.10 to 0.0.0.0/0')
})

test('numbers that a node drew for itself are no difference', () => {
  const { texts } = changed('cilium_lxc', (text) => text.replace(/id=1 {4}/, 'id=3077'))
  expect(texts).toEqual([])
  const prefix = changed('cilium_ipcache_v2', (text) => text.replace('16777217', '16777300'))
  expect(prefix.texts).toEqual([])
})

test('a dump that is cut short calls nothing missing, and says so', () => {
  for (const print of [printMapText, forms.JSON ?? printMapText, printMapRaw, forms['raw JSON'] ?? printMapText]) {
    const { texts, reading } = changed(
      'cilium_ipcache_v2',
      (text) => text.slice(0, Math.floor(text.length * 0.6)),
      print,
    )
    expect(texts).toEqual([])
    expect(reading.map(({ code }) => code)).toContain('maps.dump-cut')
  }
})

test('wherever a dump of services ends, no backend is called missing', () => {
  for (const print of [printMapText, forms.JSON ?? printMapText]) {
    for (let part = 0.35; part < 0.95; part += 0.05) {
      // A text that ends with a line looks whole.
      const cut = (text: string) => text.slice(0, Math.floor(text.length * part)).trimEnd()
      expect(changed('cilium_lb4_services_v2', cut, print).texts, String(part)).toEqual([])
    }
  }
})

test('unknown columns and lines that are broken do no harm', () => {
  const wide = changed('cilium_egress_gw_policy_v4', (text) =>
    text
      .split('\n')
      .map((line, index) => (line === '' ? '' : `${line.padEnd(70)}${index === 0 ? 'Interface' : 'eth0'}`))
      .join('\n'),
  )
  expect([wide.texts, wide.reading]).toEqual([[], []])
  const broken = changed('cilium_ipcache_v2', (text) => text.replace(/^(0\.0\.0\.0\/0) .*$/m, '$1           ???'))
  expect(broken.reading.map(({ code }) => code)).toEqual(['maps.dump-bad-row'])
  expect(broken.texts.map((one) => one.split(':')[0])).toEqual(['maps-diff.row-missing'])
})

test('a dump of another version is told, and compared all the same', () => {
  const old = askMaps(objects, { config, version: '1.16' })
  const { texts } = diff([{ file: 'ipcache.txt', text: printMapText(old.map('cilium_ipcache')) }])
  expect(texts).toContain('maps-diff.other-version: this dump is laid out as Cilium 1.16 does, and 1.18 is asked for')
  const raw = diff([{ file: 'cilium_ipcache', text: printMapRaw(old.map('cilium_ipcache')) }])
  expect(raw.texts.map((one) => one.split(' ')[1])).toEqual(['10.244.2.0/24'])
})

test.each(ciliumVersions)('a policy map as bytes tells that it is of %s', (version) => {
  const asked = askMaps([], { version })
  const files = asked.dumped
    .filter(({ layout }) => layout.name.startsWith('cilium_policy_') && layout.name !== 'cilium_policystats')
    .map((map) => ({ file: map.layout.name, text: printMapRaw(map) }))
  const { maps } = parseDump(files)
  expect(maps.map(({ kind, era }) => [kind, era])).toEqual(files.map(() => ['policy', version]))
  const { world } = askMaps([]).maps
  const { findings } = diffMaps(world.cluster, maps, { node: 'node-a', slices: world.slices })
  const told = findings.filter(({ code }) => code === 'maps-diff.other-version').map(({ hint }) => hint)
  expect(told).toEqual(version === '1.18' ? [] : [`add --cilium ${version}`])
})

test('bytes of a size that no version has are told', () => {
  const { reading } = changed('cilium_lxc', (text) => text.replaceAll(/ 00$/gm, ''), printMapRaw)
  expect(reading.map(({ code }) => code)).toEqual(['maps.dump-bad-row'])
})

test('lists of the agent: Services, endpoints, identities and addresses', () => {
  const services = `ID   Frontend                   Service Type   Backend
1    10.96.0.50:80/TCP          ClusterIP      1 => 10.244.1.20:8080/TCP (active)
                                               2 => 10.244.2.31:8080/TCP (active)
`
  expect(
    diff([{ file: 'service-list.txt', text: services }])
      .texts.slice(0, 2)
      .map((one) => one.split(':')[0]),
  ).toEqual(['maps-diff.stale-backend', 'maps-diff.backend-missing'])
  const identities = `ID      LABELS
1       reserved:host
1001    k8s:app=client
        k8s:io.kubernetes.pod.namespace=business
4711    k8s:app=gone
`
  expect(diff([{ file: 'identity-list.txt', text: identities }]).texts).toEqual([
    'maps-diff.identity-unused: 1 identity no pod of the input has: 4711',
  ])
  const endpoints = JSON.stringify([
    { id: 77, status: { identity: { id: 1001 }, networking: { addressing: [{ ipv4: '10.244.1.10' }] } } },
    { id: 78, status: { identity: { id: 1002 }, networking: { addressing: [{ ipv4: '10.244.1.21' }] } } },
  ])
  expect(
    diff([{ file: 'endpoint-list.json', text: endpoints }]).texts.map((one) => one.split(' ').slice(0, 2).join(' ')),
  ).toEqual(['maps-diff.row-missing: 10.244.1.20', 'maps-diff.row-stale: 10.244.1.21'])
  const ips = JSON.stringify([{ cidr: '10.244.2.30/32', identity: 1002 }])
  expect(diff([{ file: 'ip-list.json', text: ips }]).texts[0]).toContain('maps-diff.wrong-identity: 10.244.2.30/32')
})

test('identities that are not given are learned from the node', () => {
  const bare = askMaps(objects, { config, world: asked.maps.world.cluster.pods.size > 0 ? withoutIdentities() : [] })
  const text = printMapText(asked.map('cilium_ipcache_v2'))
  expect(diff([{ file: 'ipcache.txt', text }], bare).texts).toEqual([])
})

function withoutIdentities() {
  return [
    node('node-a', '192.168.1.10'),
    ...['a', 'b', 'c', 'd'].map((name, at) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        namespace: name === 'd' ? 'other' : 'business',
        name,
        labels: [{ app: 'client' }, { app: 'server' }, { app: 'server', ver: 'v2' }, { app: 'client' }][at] ?? {},
      },
      spec: { nodeName: at < 2 ? 'node-a' : 'node-b', containers: [{ name: 'main' }] },
      status: {
        phase: 'Running',
        podIPs: [{ ip: ['10.244.1.10', '10.244.1.20', '10.244.2.30', '10.244.2.40'][at] }],
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    })),
  ]
}

test('a map that is nearly full is told', () => {
  const small = askMaps(objects, { config: { ...config, 'bpf-policy-map-max': '4' } })
  const files = filesOf(small, printMapText).filter(({ file }) => file.includes('policy_v2'))
  expect(diff(files, small).texts.some((one) => one.startsWith('maps-diff.map-pressure'))).toBe(true)
})

test('a sysdump’s folder: its files by the names that cilium-bugtool gives them', () => {
  const cmd = 'cilium-sysdump/cilium-bugtool-cilium-x7k2p-20260302-091405/cmd'
  const fenced = (command: string, text: string) => `# ${command}\n\n\`\`\`\n${text}\`\`\`\n`
  const policies = asked.dumped.filter(({ layout }) => layout.name.startsWith('cilium_policy_v2_'))
  const all = policies
    .map(
      (map) =>
        `Endpoint ID: ${Number(map.layout.name.slice(-5))}\nPath: /sys/fs/bpf/tc/globals/${map.layout.name}\n\n${printMapText(map)}\n\n`,
    )
    .join('')
  const files = [
    {
      file: `${cmd}/cilium-dbg-bpf-lb-list.md`,
      text: fenced('cilium-dbg bpf lb list', printMapText(asked.map('cilium_lb4_services_v2'))),
    },
    {
      file: `${cmd}/cilium-bpf-ipcache-list.md`,
      text: fenced('cilium bpf ipcache list', printMapText(asked.map('cilium_ipcache_v2'))),
    },
    {
      file: `${cmd}/cilium-dbg-bpf-policy-get---all---numeric.md`,
      text: fenced('cilium-dbg bpf policy get --all --numeric', all),
    },
    {
      file: `${cmd}/bpftool-map-dump-pinned--sys-fs-bpf-tc-globals-cilium_lxc.md`,
      text: fenced('bpftool map dump pinned /sys/fs/bpf/tc/globals/cilium_lxc', printMapRaw(asked.map('cilium_lxc'))),
    },
    {
      file: `${cmd}/cilium-dbg-bpf-lb-list---backends.json`,
      text: JSON.stringify(mapJson(asked.map('cilium_lb4_backends_v3'))),
    },
    { file: `${cmd}/uptime.md`, text: fenced('uptime', ' 09:14:05 up 3 days\n') },
  ].map((one) => ({ ...one, isPart: true }))
  const { maps, texts, reading } = diff(files)
  expect(texts).toEqual([])
  expect(maps.map(({ kind }) => kind).sort()).toEqual(
    ['backends', 'ipcache', 'lxc', ...policies.map(() => 'policy'), 'services'].sort(),
  )
  expect(reading.map(({ message }) => message)).toEqual(['1 file of the folder is no dump that is compared, this one'])
})

test('what is missing beside rows that cannot be read may be one of them', () => {
  const raw = changed(
    'cilium_ipcache_v2',
    (text) => text.replace(/^(key: .*) 0a f4 01 14/m, '$1 zz f4 01 14'),
    printMapRaw,
  )
  expect(raw.findings.map(({ code, hint }) => [code, hint])).toContainEqual([
    'maps-diff.row-missing',
    'unless it is the row that cannot be read',
  ])
  const short = changed('cilium_ipcache_v2', (text) => text.replace(/ [0-9a-f]{2}$/gm, ''), printMapRaw)
  expect(short.findings[0]?.hint).toMatch(/^unless it is one of the \d+ rows that cannot be read$/)
})

test('where bpftool counts more rows than stand there the dump is cut, and nothing is called missing', () => {
  const { texts } = changed('cilium_ipcache_v2', (text) => text.replace(/^key: .*\n/m, ''), printMapRaw)
  expect(texts).toEqual([])
})

test('a dump of another node is told for one', () => {
  const found = changed('cilium_ipcache_v2', (text) =>
    text
      .replaceAll('identity=1 ', 'identity=6 ')
      .replace('192.168.1.11/32     identity=6', '192.168.1.11/32     identity=1'),
  )
  const told = found.findings.filter(({ code }) => code === 'maps-diff.other-node')
  expect(told.map(({ message, hint }) => [message, hint])).toEqual([
    ['the host’s addresses in this dump are those of node-b, and it is compared with node-a', 'add --node node-b'],
  ])
})
