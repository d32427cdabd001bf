import { describe, expect, test } from 'vitest'
import { buildFrom, type Raw, rawRunningPod, rawService } from '#manifests/support/raw-objects'
import { selectSlices } from '../endpointslices/select-slices'
import { buildDnsServer } from './build-dns-server'
import { type Client, printRecord, printRecordData, type Reply } from './record'

const objects: readonly Raw[] = [
  rawService('web', { clusterIP: '10.96.10.1', ports: [{ port: 80 }] }),
  rawService('ext', { type: 'ExternalName', externalName: 'pinned.example' }),
  rawRunningPod('client', '10.244.1.9'),
]

function build(corefile: string, data: Readonly<Record<string, string>> = {}, more: readonly Raw[] = []) {
  const map = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'coredns', namespace: 'kube-system' },
    data: { Corefile: corefile, ...data },
  }
  const { cluster } = buildFrom([...objects, ...more, map])
  const slices = selectSlices(cluster, 'computed').value
  return buildDnsServer({ cluster, slices, clusterDomain: 'cluster.local', nodeSearch: ['corp.example'] })
}

const block = (...lines: readonly string[]): string => `. {\n${lines.join('\n')}\n}\n`
const usual = [
  'kubernetes cluster.local in-addr.arpa {\n pods verified\n fallthrough in-addr.arpa\n}',
  'forward . 192.0.2.53',
]

function ask(corefile: string, name: string, type = 'A', client?: Client): Reply {
  return build(corefile).value.answer({ name, type, ...(client !== undefined && { client }) })
}
const dataOf = (reply: Reply): readonly string[] => reply.answers.map(printRecordData)
const web = 'web.shop.svc.cluster.local.'

describe('which plugin answers', () => {
  test('the longest zone of the server blocks takes the question', () => {
    const corefile = `${block(...usual)}corp.example {\n forward . 10.0.0.1\n}\n`
    expect(ask(corefile, 'a.corp.example.').forwarded?.to).toEqual(['10.0.0.1'])
    expect(ask(corefile, 'a.example.').forwarded?.to).toEqual(['192.0.2.53'])
    expect(ask('cluster.local {\n kubernetes\n}\n', 'a.example.').rcode).toBe('REFUSED')
    expect(ask('. {\n kubernetes cluster.local\n}\n', 'a.example.').rcode).toBe('SERVFAIL')
  })

  test('the order is CoreDNS’s, not that of the lines', () => {
    const corefile = block(
      'forward . 192.0.2.53',
      'kubernetes cluster.local',
      `hosts {\n 192.0.2.7 ${web}\n fallthrough\n}`,
    )
    expect(dataOf(ask(corefile, web))).toEqual(['192.0.2.7'])
  })

  test('forward leaves out what except names', () => {
    const corefile = block('forward . 192.0.2.53 {\n except lab.example\n}')
    expect(ask(corefile, 'a.lab.example.').rcode).toBe('SERVFAIL')
    expect(ask(corefile, 'a.example.').forwarded).toBeDefined()
  })

  test('plugins that change no answer are known without a word', () => {
    const { findings } = build(
      block(
        'errors',
        'health {\n lameduck 5s\n}',
        'ready',
        'log',
        'loop',
        'reload',
        'loadbalance',
        'prometheus :9153',
        ...usual,
      ),
    )
    expect(findings).toEqual([])
  })

  test('a plugin that nobody knows makes every answer unsure, a known one only those it may give', () => {
    const strange = build(block('k8s_gateway apps.example', ...usual))
    expect(strange.findings.map(({ code }) => code)).toEqual(['dns.unknown-plugin'])
    expect(strange.value.answer({ name: web, type: 'A' })).toMatchObject({
      rcode: 'NOERROR',
      unsure: ['the unknown plugin k8s_gateway may answer first'],
    })
    const file = build(block('file db.example lab.example', ...usual)).value
    expect(file.answer({ name: web, type: 'A' }).unsure).toBeUndefined()
    expect(file.answer({ name: 'a.lab.example.', type: 'A' }).unsure).toEqual(['plugin file may answer instead'])
  })

  test('a Corefile that CoreDNS refuses answers nothing for sure', () => {
    expect(ask('. {\n kubernetes cluster.local\n', web).unsure).toEqual(['CoreDNS does not start with this Corefile'])
  })
})

describe('hosts', () => {
  const corefile = block(
    'hosts {\n 192.0.2.7 pinned.example other.example\n 2001:db8::7 pinned.example\n 192.0.2.8 *.wild.example\n ttl 60\n fallthrough\n}',
    ...usual,
  )

  test('gives addresses, names of addresses, and for other types nothing', () => {
    expect(ask(corefile, 'pinned.example.').answers.map(printRecord)).toEqual(['pinned.example. 60 IN A 192.0.2.7'])
    expect(dataOf(ask(corefile, 'Pinned.Example.', 'AAAA'))).toEqual(['2001:db8::7'])
    expect(ask(corefile, 'pinned.example.', 'TXT')).toMatchObject({ rcode: 'NOERROR', answers: [], by: 'hosts' })
    expect(dataOf(ask(corefile, '7.2.0.192.in-addr.arpa.', 'PTR'))).toEqual(['pinned.example.', 'other.example.'])
  })

  test('a star stands for one label', () => {
    expect(dataOf(ask(corefile, 'a.wild.example.'))).toEqual(['192.0.2.8'])
    expect(ask(corefile, 'a.b.wild.example.').by).toBe('forward')
    expect(ask(corefile, 'wild.example.').by).toBe('forward')
  })

  test('without fallthrough a name that is missing fails', () => {
    expect(ask(block('hosts {\n 192.0.2.7 a.example\n}', ...usual), 'b.example.')).toMatchObject({
      rcode: 'SERVFAIL',
      by: 'hosts',
    })
  })

  test('a file is a key of the same ConfigMap', () => {
    const text = block('hosts /etc/coredns/NodeHosts {\n fallthrough\n}', ...usual)
    const { value } = build(text, { NodeHosts: '172.18.0.2 node-a # first\n' })
    expect(dataOf(value.answer({ name: 'node-a.', type: 'A' }))).toEqual(['172.18.0.2'])
    expect(build(text).findings.map(({ code }) => code)).toEqual(['dns.file-unknown'])
  })

  test('an ExternalName that the Corefile itself knows is answered whole', () => {
    expect(dataOf(ask(corefile, 'ext.shop.svc.cluster.local.'))).toEqual(['pinned.example.', '192.0.2.7'])
  })
})

describe('template', () => {
  test('makes records from the parts of a name', () => {
    const corefile = block(
      'template IN A nip.example {\n match ^ip-(?P<a>[0-9]+)-(?P<b>[0-9]+)[.]nip[.]example[.]$\n answer "{{ .Name }} 60 IN A 192.0.{{ .Group.a }}.{{ .Group.b }}"\n fallthrough\n}',
      ...usual,
    )
    expect(ask(corefile, 'ip-2-9.nip.example.').answers.map(printRecord)).toEqual([
      'ip-2-9.nip.example. 60 IN A 192.0.2.9',
    ])
    expect(ask(corefile, 'other.nip.example.').by).toBe('forward')
    expect(ask(corefile, 'ip-2-9.nip.example.', 'AAAA').by).toBe('forward')
  })

  test('may say that names do not exist, and fails where no pattern matches', () => {
    expect(
      ask(block('template ANY ANY corp.example {\n rcode NXDOMAIN\n}', ...usual), 'web.corp.example.'),
    ).toMatchObject({ rcode: 'NXDOMAIN', by: 'template' })
    expect(ask(block('template IN A corp.example {\n match ^x\n}', ...usual), 'web.corp.example.').rcode).toBe(
      'SERVFAIL',
    )
  })

  test('one that asks for more than Portolan knows makes the answer unsure', () => {
    const corefile = block(
      'template IN A a.example {\n answer "{{ .Name }} 60 IN A {{ parseInt .Group.x 16 8 }}"\n}',
      ...usual,
    )
    expect(ask(corefile, 'a.example.').unsure).toHaveLength(1)
  })
})

describe('rewrite', () => {
  test.each([
    ['rewrite name app.example web.shop.svc.cluster.local', 'app.example.', 'app.example.'],
    ['rewrite stop name exact app.example web.shop.svc.cluster.local', 'App.example.', 'App.example.'],
    ['rewrite name suffix .apps.example .shop.svc.cluster.local', 'web.apps.example.', web],
    ['rewrite name suffix .apps.example .shop.svc.cluster.local answer auto', 'web.apps.example.', 'web.apps.example.'],
    ['rewrite name prefix old- web.', 'old-shop.svc.cluster.local.', web],
    ['rewrite name substring .apps. .shop.svc.', 'web.apps.cluster.local.', web],
    ['rewrite name regex (.*)\\.apps\\.example {1}.shop.svc.cluster.local', 'web.apps.example.', web],
    [
      'rewrite name regex (.*)\\.apps\\.example {1}.shop.svc.cluster.local answer name (.*)\\.shop\\.svc\\.cluster\\.local {1}.apps.example',
      'web.apps.example.',
      'web.apps.example.',
    ],
    [
      'rewrite stop {\n name regex (.*)\\.apps\\.example {1}.shop.svc.cluster.local\n answer name (.*)\\.shop\\.svc\\.cluster\\.local {1}.apps.example\n}',
      'web.apps.example.',
      'web.apps.example.',
    ],
  ])('%s', (rule, asked, owner) => {
    expect(ask(block(rule, ...usual), asked).answers.map(printRecord)).toEqual([`${owner} 5 IN A 10.96.10.1`])
  })

  test('the first rule that matches ends it, unless it says continue', () => {
    const rules = (mode: string) => [
      `rewrite ${mode} name a.example b.example`,
      'rewrite name b.example web.shop.svc.cluster.local',
    ]
    expect(ask(block(...rules('stop'), ...usual), 'a.example.').forwarded?.name).toBe('b.example.')
    expect(dataOf(ask(block(...rules('continue'), ...usual), 'a.example.'))).toEqual(['10.96.10.1'])
  })

  test('types and times can be rewritten, and rules that Portolan does not know make the answer unsure', () => {
    expect(dataOf(ask(block('rewrite type ANY A', ...usual), web, 'ANY'))).toEqual(['10.96.10.1'])
    expect(ask(block('rewrite ttl regex (.*) 15', ...usual), web).answers[0]?.ttl).toBe(15)
    expect(ask(block('rewrite ttl suffix cluster.local -3', ...usual), web).answers[0]?.ttl).toBe(3)
    expect(ask(block('rewrite cname exact a.example b.example', ...usual), web).unsure).toHaveLength(1)
  })
})

describe('cache', () => {
  test('gives all records of a reply one time, within its limits', () => {
    expect(ask(block('cache 30', ...usual), 'dns-version.cluster.local.', 'TXT').answers[0]?.ttl).toBe(30)
    expect(ask(block('cache 30', 'kubernetes cluster.local {\n ttl 0\n}'), web).answers[0]?.ttl).toBe(5)
    expect(ask(block('cache {\n success 1000 20 10\n denial 1000 7\n}', ...usual), web).answers[0]?.ttl).toBe(10)
    expect(ask(block('cache 3 other.example', ...usual), web).answers[0]?.ttl).toBe(5)
  })
})

describe('autopath', () => {
  const corefile = block('autopath @kubernetes', ...usual)
  const pod = { address: '10.244.1.9' }

  test('walks the search list for a pod that it knows, and answers the first question', () => {
    expect(dataOf(ask(corefile, 'web.shop.shop.svc.cluster.local.', 'A', pod))).toEqual([web, '10.96.10.1'])
    const outside = ask(corefile, 'www.example.org.shop.svc.cluster.local.', 'A', pod)
    expect([dataOf(outside), outside.forwarded?.name]).toEqual([['www.example.org.'], 'www.example.org.'])
  })

  test('does nothing for others, nor below other search domains', () => {
    expect(ask(corefile, 'web.shop.shop.svc.cluster.local.', 'A', { address: '10.244.9.9' }).rcode).toBe('NXDOMAIN')
    expect(ask(corefile, 'www.example.org.svc.cluster.local.', 'A', pod).rcode).toBe('NXDOMAIN')
  })

  test('without verified pods it is told to have no effect', () => {
    const { findings } = build(block('autopath @kubernetes', 'kubernetes cluster.local'))
    expect(findings.map(({ code }) => code)).toEqual(['dns.autopath-without-pods'])
  })
})

describe('what goes round', () => {
  test('names that lead to one another end in a failure, not in a loop', () => {
    const corefile = block('template IN A a.example {\n answer "a.example 60 IN CNAME a.example"\n}')
    expect(ask(corefile, 'a.example.').answers.length).toBeLessThan(20)
  })
})

describe('the ConfigMaps that clouds add', () => {
  test('coredns-custom holds what custom imports name', () => {
    const custom = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'coredns-custom', namespace: 'kube-system' },
      data: { 'lab.server': 'lab.example {\n forward . 10.0.0.9\n}\n' },
    }
    const text = `${block(...usual)}import /etc/coredns/custom/*.server\n`
    const { value, findings } = build(text, {}, [custom])
    expect([value.answer({ name: 'a.lab.example.', type: 'A' }).forwarded?.to, findings]).toEqual([['10.0.0.9'], []])
  })

  test('a Corefile without a server block answers nothing', () => {
    const { value, findings } = build('# nothing yet\n')
    expect(findings.map(({ message }) => message)).toEqual([
      'the Corefile has no server block, so CoreDNS answers nothing',
    ])
    expect(value.answer({ name: 'web.shop.svc.cluster.local.', type: 'A' }).rcode).toBe('REFUSED')
  })

  test('a Corefile without the kubernetes plugin serves no cluster names', () => {
    expect(build('. {\n forward . 192.0.2.53\n}\n').findings.map(({ code }) => code)).toEqual([
      'dns.no-kubernetes-plugin',
    ])
  })
})
