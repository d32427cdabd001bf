/** The table of Cilium's maps by version in docs/fidelity.md: names, sizes and texts are those that `maps` writes. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ciliumVersions } from '#model/cilium-version'
import { askMaps, egressPolicy, service, worldConfig } from './cilium/ask-maps'
import { cnp } from './policy/ask-cilium'
import { node } from './policy/policy-objects'

const page = readFileSync(join(import.meta.dirname, '..', 'docs', 'fidelity.md'), 'utf8')
const section = page.slice(page.indexOf("### Cilium's maps"))
const table = section
  .slice(0, section.indexOf('\n\n-'))
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) => line.slice(2, -2).split(' | '))

type Said = { readonly name: string; readonly sizes: string }

/** Each version's cell with what it takes over from the ones before it. */
function said(title: string): readonly Said[] {
  const [, ...cells] = table.find(([name]) => name === title) ?? []
  let [name, sizes] = ['', '']
  return cells.map((cell) => {
    name = /`(cilium_\w+)`/.exec(cell)?.[1] ?? name
    sizes = /(\d+ → \d+)/.exec(cell.replace(/and `….*/, ''))?.[1] ?? sizes
    return { name, sizes }
  })
}

const range = { ports: [{ port: '8080', endPort: 8087, protocol: 'TCP' }] }
const objects = [
  { ...node('node-b', '192.168.1.11', { egress: 'true' }), spec: { podCIDRs: ['10.244.2.0/24'] } },
  egressPolicy(),
  {
    ...service('business/server', { type: 'LoadBalancer' }),
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.80' }] } },
  },
  cnp('business/p', { endpointSelector: { matchLabels: { app: 'server' } }, ingress: [{ toPorts: [range] }] }),
]
const config = { ...worldConfig, 'enable-ipv6': 'true' }
const asked = ciliumVersions.map((version) => askMaps(objects, { version, config }))

test('the table has a column for each version', () => {
  expect(table[0]?.slice(1)).toEqual(ciliumVersions)
  expect(table.map(([title]) => title).slice(1)).toEqual([
    'endpoints',
    'identities by prefix',
    'pod ranges',
    'policy',
    'port ranges in text',
    'services',
    'backends in text',
    'egress gateway',
  ])
})

test.each(['endpoints', 'identities by prefix', 'policy', 'services', 'egress gateway'])(
  'names and sizes: %s',
  (title) => {
    const found = said(title).map(({ name }, index) => {
      const own = new RegExp(`^${name.replace(/_N$/, '_\\d+')}$`)
      const layout = asked[index]?.dumped.find(({ layout }) => own.test(layout.name))?.layout
      return { name, sizes: layout === undefined ? 'none' : `${layout.keySize} → ${layout.valueSize}` }
    })
    expect(found).toEqual(said(title))
  },
)

/** In which versions a map or a text is there. */
function has(wanted: RegExp): readonly boolean[] {
  return asked.map(({ dumped }) =>
    dumped.some(({ layout, rows }) => rows.some(({ key, value }) => wanted.test(`${layout.name} ${key} ${value}`))),
  )
}

test.each([
  ['the tunnel map goes with 1.18', /^cilium_tunnel_map /, [true, true, false, false]],
  ['and its ranges are rows of the ipcache', /ipcache\S* 10\.244\.2\.0\/24 identity=9 /, [false, false, true, true]],
  ['nodeid until 1.16', /^cilium_ipcache .* nodeid=/, [true, false, false, false]],
  ['flags since', /^cilium_ipcache\S* .* flags=/, [false, true, true, true]],
  ['flags of the tunnel', /flags=hastunnel/, [false, false, true, true]],
  ['parent_ifindex', /parent_ifindex/, [false, false, true, true]],
  ['ranges of ports as base and length', /0x1f90\/13\/TCP/, [true, false, false, false]],
  ['or as first and last', /8080-8087\/TCP/, [false, true, true, true]],
  ['protocols of services', /services_v2 10\.96\.0\.50:80\/TCP \(0\)/, [false, true, true, true]],
  ['a row for other ports of a load balancer', /services_v2 192\.0\.2\.80:0\/ANY/, [false, false, true, true]],
  ['backends of any protocol', /backends_v3 \d+ ANY:\/\/10\.244\.1\.20:8080/, [true, false, false, false]],
  ['of TCP, with their ports', /backends_v3 \d+ TCP:\/\/10\.244\.1\.20:8080/, [false, true, false, false]],
  ['and without', /backends_v3 \d+ TCP:\/\/10\.244\.1\.20(?!:)/, [false, false, true, true]],
])('%s', (_, wanted, versions) => {
  expect(has(wanted)).toEqual(versions)
})

test('the egress gateway of IPv6 comes with 1.18', () => {
  const sizes = asked.map(({ dumped }) => {
    const six = dumped.find(({ layout }) => layout.name === 'cilium_egress_gw_policy_v6')?.layout
    return six === undefined ? 'none' : `${six.keySize} → ${six.valueSize}`
  })
  expect(sizes).toEqual(['none', 'none', '36 → 40', '36 → 40'])
})
