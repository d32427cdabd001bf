/** glibc, musl and dig resolve against `portolan dns --serve` itself: what they ask and hear is what `portolan dns` computes. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runWords } from '../run-words'
import { describeLibc, type Laboratory, openLaboratory, portolanServer } from './dns-laboratory'

/** A headless Service of so many addresses. */
const crowd = (count: number): string => `---
apiVersion: v1
kind: Service
metadata: { name: crowd-${count}, namespace: shop }
spec: { clusterIP: None, ports: [{ name: http, port: 80 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: crowd-${count}, namespace: shop, labels: { kubernetes.io/service-name: crowd-${count} } }
addressType: IPv4
ports: [{ name: http, port: 80, protocol: TCP }]
endpoints:
${Array.from({ length: count }, (_, index) => `- addresses: [10.244.9.${index + 1}]`).join('\n')}
`

/** Around what a plain reply over UDP can hold, and what glibc's buffers can; names that lead out and in. */
const counts = [24, 25, 28, 29, 50, 51, 102]
const more = `${counts.map(crowd).join('')}
---
apiVersion: v1
kind: Service
metadata: { name: partner, namespace: shop }
spec: { type: ExternalName, externalName: partner.example.com }
---
apiVersion: v1
kind: Service
metadata: { name: alias, namespace: shop }
spec: { type: ExternalName, externalName: web.shop.svc.cluster.local }
---
apiVersion: v1
kind: Service
metadata: { name: both, namespace: shop }
spec: { clusterIP: 10.96.0.99, clusterIPs: [10.96.0.99, 'fd00::99'], ipFamilies: [IPv4, IPv6], ports: [{ port: 80 }] }
`

const names = [
  'web',
  'web.shop',
  'web.shop.svc.cluster.local',
  'web.shop.svc.cluster.local.',
  'web-headless',
  'db-0.db',
  'both',
  'alias',
  'partner',
  ...counts.map((count) => `crowd-${count}`),
  'nosuch',
  'web.nowhere',
  'kubernetes.default',
  'www.example.org',
  'www.example.org.',
  'a.b.c.d.e.example.org',
]

type Told = {
  readonly outcome: string
  readonly queries: number
  readonly answers: readonly string[]
  readonly attempts: readonly { readonly name: string; readonly type: string; readonly sends?: number }[]
}

async function portolan(...argv: readonly string[]): Promise<string> {
  return (await runWords(argv)).out
}

describeLibc('the computed zone on the wire', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-zone-'))
  const file = join(folder, 'more.yaml')
  const input = [
    '--from',
    'samples/shop',
    '--from',
    file,
    '--slices',
    'input',
    '--search',
    'corp.example',
    '-n',
    'shop',
  ]
  let laboratory: Laboratory
  let conf: string

  beforeAll(async () => {
    writeFileSync(file, more)
    laboratory = await openLaboratory(portolanServer(...input))
    conf = await portolan('resolv-conf', '-n', 'shop', '--nameserver', '127.0.0.1', '--search', 'corp.example')
  })
  afterAll(() => {
    laboratory?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  test.each(names.flatMap((name) => (['glibc', 'musl'] as const).map((libc) => [name, libc] as const)))(
    '%s by %s',
    async (name, libc) => {
      const told: Told = JSON.parse(
        await portolan('dns', name, ...input, '--nameserver', '127.0.0.1', '--libc', libc, '-o', 'json'),
      )
      const real = await laboratory.lookUp(libc, name, conf)
      const sent = told.attempts.flatMap((attempt) =>
        Array<string>(attempt.sends ?? 1).fill(`${attempt.type} ${attempt.name}`),
      )
      expect([...real.questions].sort()).toEqual([...sent].sort())
      expect([...new Set(real.questions)]).toEqual([...new Set(sent)])
      expect(real.questions).toHaveLength(told.queries)
      expect(real.outcome === 'found').toBe(told.outcome === 'resolved' || told.outcome === 'forwarded')
      if (told.outcome !== 'resolved') return
      const addresses = told.answers.filter((answer) => /^[0-9a-f.:]+$/.test(answer))
      // musl before 1.2.4 does not ask again over TCP: it takes the addresses that came.
      const seen = libc === 'musl' && addresses.length > 28 ? addresses.slice(0, real.addresses.length) : addresses
      expect([...real.addresses].sort()).toEqual([...seen].sort())
      expect(real.addresses.length).toBeGreaterThan(0)
    },
  )

  const dig = async (...words: readonly string[]): Promise<string> => laboratory.run('dig', '@127.0.0.1', ...words)

  test('dig over UDP and TCP, with and without EDNS', async () => {
    expect(await dig('+short', 'web.shop.svc.cluster.local')).toBe('10.96.0.20\n')
    expect(await dig('+short', '+tcp', 'web.shop.svc.cluster.local')).toBe('10.96.0.20\n')
    expect((await dig('+short', '+noedns', 'crowd-51.shop.svc.cluster.local')).trim().split('\n')).toHaveLength(51)
    expect(await dig('+noedns', '+ignore', 'crowd-51.shop.svc.cluster.local')).toMatch(/flags: qr aa tc rd.*ANSWER: 28/)
    expect(await dig('+bufsize=4096', '+ignore', 'crowd-51.shop.svc.cluster.local')).toMatch(
      /flags: qr aa rd.*ANSWER: 51/,
    )
  })

  test('dig shows every kind of record, the SOA of what is missing, and refusals', async () => {
    expect(await dig('+noall', '+answer', '+additional', '_pg._tcp.db.shop.svc.cluster.local', 'SRV')).toMatch(
      /SRV\s+0 50 5432 db-0\.db\.shop\.svc\.cluster\.local\.[\s\S]*db-0\.db\.shop\.svc\.cluster\.local\.\s+30\s+IN\s+A\s+10\.244\.1\.20/,
    )
    expect(await dig('+short', '-x', '10.96.0.20')).toBe('web.shop.svc.cluster.local.\n')
    expect(await dig('+short', 'dns-version.cluster.local', 'TXT')).toBe('"1.1.0"\n')
    expect(await dig('+short', 'cluster.local', 'NS')).toBe('kube-dns.kube-system.svc.cluster.local.\n')
    expect(await dig('+short', 'partner.shop.svc.cluster.local')).toBe('partner.example.com.\n192.0.2.1\n')
    expect(await dig('nosuch.shop.svc.cluster.local')).toMatch(
      /NXDOMAIN[\s\S]*cluster\.local\.\s+30\s+IN\s+SOA\s+ns\.dns\.cluster\.local\. hostmaster/,
    )
    expect(await dig('+edns=1', '+noednsneg', 'web.shop.svc.cluster.local')).toContain('BADVERS')
    expect(await dig('+opcode=update', 'web.shop.svc.cluster.local')).toContain('NOTIMP')
    expect(await dig('cluster.local', 'AXFR')).toContain('Transfer failed')
  })

  test('nonsense does not end it', async () => {
    const send = `const s = require('node:dgram').createSocket('udp4'); let n = 0
      for (const size of [0, 1, 11, 12, 13, 300, 1400]) s.send(require('node:crypto').randomBytes(size), 53, '127.0.0.1', () => ++n === 7 && s.close())`
    await laboratory.run(process.execPath, '-e', send)
    expect(await dig('+short', 'web.shop.svc.cluster.local')).toBe('10.96.0.20\n')
  })
})
