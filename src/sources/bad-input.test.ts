import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { Failure } from '#base/failure'
import { printFinding } from '#base/finding'
import { readFrom } from './read-from'

const folder = mkdtempSync(join(tmpdir(), 'portolan-bad-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function failureOf(path: string): Promise<{ code: string; message: string }> {
  const error = await readFrom([path]).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof Failure)) throw new Error(`${path} was read`, { cause: error })
  return { code: error.code, message: error.message }
}

/** What a person sees, without the news. */
async function seen(path: string) {
  const { value, findings } = await readFrom([path])
  const lines = findings
    .filter(({ severity }) => severity !== 'info')
    .map((finding) => printFinding(finding).replaceAll('test/bad-input/', ''))
  return { cluster: value, lines }
}

describe('input that cannot be read at all ends in one sentence with place and remedy', () => {
  test.each([
    [
      'tabs.yaml',
      'input.not-objects',
      'line 4: this part of the YAML cannot be read: a line is indented with a tab, which YAML forbids; replace the tab with blanks',
    ],
    [
      'empty.yaml',
      'input.not-objects',
      'it is empty; write the objects into it, for example with kubectl get pods,services -A -o yaml',
    ],
    [
      'comments-only.yaml',
      'input.not-objects',
      'it holds nothing but comments; write the objects into it, for example with kubectl get pods,services -A -o yaml',
    ],
    [
      'duplicate-keys.yaml',
      'input.not-objects',
      'line 6: this part of the YAML cannot be read: a key stands twice in one map; delete one',
    ],
    [
      'values.yaml',
      'input.not-objects',
      'line 1: the map is no Kubernetes object (it has neither kind nor apiVersion); give objects as kubectl get -o yaml or -o json prints them',
    ],
    [
      'api-error.yaml',
      'input.not-objects',
      'line 1: this is an error that the API server answered ("pods is forbidden: User \\"dev\\" cannot list resource \\"pods\\""), not the objects; run the kubectl command again',
    ],
    [
      'kubectl-error.yaml',
      'input.not-objects',
      'it holds an error of kubectl ("Error from server (Forbidden): pods is forbidden: User \\"dev\\" cannot list resource \\"pods\\" in API group \\"\\" at the cluster scope"), not the objects; run the command as a user who may read them',
    ],
    [
      'kubectl-table.yaml',
      'input.not-objects',
      'it is a table of kubectl, not the objects; run the command again with -o yaml or -o json',
    ],
    [
      'alias-bomb.yaml',
      'input.not-objects',
      'line 27: this part of the YAML cannot be read: it has more than 200 aliases (*name); write out what they stand for',
    ],
  ])('%s', async (file, code, reason) => {
    const path = `test/bad-input/${file}`
    expect(await failureOf(path)).toEqual({ code, message: `${path} cannot be used: ${reason}` })
  })

  test.each([
    ['binary.yaml', 'is a binary file, not text; give YAML, JSON or a ruleset as its command prints it'],
    ['latin1.yaml', 'is not UTF-8 text (line 3 is the first that is not); write it as UTF-8'],
  ])('%s', async (file, reason) => {
    const path = `test/bad-input/${file}`
    expect(await failureOf(path)).toEqual({ code: 'input.unreadable', message: `${path} ${reason}` })
  })

  test('template.yaml is sent to the tool that renders it', async () => {
    expect((await failureOf('test/bad-input/template.yaml')).message).toContain('it is a template, not YAML')
  })

  test.each([
    [
      'truncated.json',
      '{"kind": "List",\n "items": [{"kind": "Pod", "meta',
      'input.unreadable',
      'the JSON ends too early, at line 2, column 33 (a text in quotes is not closed); write the whole file again',
    ],
    ['trailing-comma.json', '{"kind": "List", "items": [],}', 'input.not-objects', undefined],
    [
      'two-values.json',
      '{"kind": "Pod"} oops',
      'input.not-objects',
      'it is neither JSON nor YAML: at line 1, column 17, a value is missing',
    ],
  ])('%s', async (file, text, code, reason) => {
    const path = join(folder, file)
    writeFileSync(path, text)
    if (reason === undefined) expect((await readFrom([path])).value.pods.size).toBe(0)
    else expect(await failureOf(path)).toEqual({ code, message: `${path} cannot be used: ${reason}` })
  })
})

describe('bad objects and fields are findings beside a right answer for the rest', () => {
  test('one-broken-document.yaml', async () => {
    const { cluster, lines } = await seen('test/bad-input/one-broken-document.yaml')
    expect([...cluster.services.keys()]).toEqual(['shop/web', 'shop/api'])
    expect(lines).toEqual([
      'error: one-broken-document.yaml:10: this part of the YAML cannot be read: bad indentation of a mapping entry; mend the line, or take the object afresh with kubectl get -o yaml [manifest.broken-document]',
    ])
  })

  test('list-in-list.yaml', async () => {
    const { cluster, lines } = await seen('test/bad-input/list-in-list.yaml')
    expect([...cluster.services.keys()]).toEqual(['shop/web', 'shop/api'])
    expect(lines).toEqual([
      'warning: list-in-list.yaml:8 items[1]: a List stands inside another list; its items are read as if they stood alone [manifest.nested-list]',
    ])
  })

  test('duplicates.yaml', async () => {
    const { cluster, lines } = await seen('test/bad-input/duplicates.yaml')
    expect(cluster.services.get('shop/web')?.ports[0]?.port).toBe(81)
    expect(lines).toEqual([
      'warning: duplicates.yaml:6 Service shop/web: the object was read before, from duplicates.yaml:1; this later one is used; delete one of the two [manifest.duplicate-object]',
    ])
  })

  test('wrong-types.yaml', async () => {
    const { cluster, lines } = await seen('test/bad-input/wrong-types.yaml')
    expect(cluster.services.get('shop/web')?.ports).toMatchObject([{ name: 'c', port: 80, targetPort: 8080 }])
    expect([...cluster.services.keys()]).toEqual(['shop/web', 'shop/portless'])
    expect(cluster.pods.get('shop/web-0')).toMatchObject({
      podIPs: ['10.244.1.5'],
      nodeName: '7',
      containers: [],
      isReady: false,
    })
    expect(lines).toMatchInlineSnapshot(`
      [
        "error: wrong-types.yaml:1 Service shop/web spec.ports[0].port: "http" is not a port number from 1 to 65535; it is left out [manifest.wrong-type]",
        "error: wrong-types.yaml:1 Service shop/web spec.ports[1].port: the field is missing; this port is left out; add port: NUMBER [manifest.wrong-type]",
        "warning: wrong-types.yaml:1 Service shop/web spec.ports[2].targetPort: the text "8080" can name no container port; it is read as the number 8080; write it without quotes [service.target-port-digits]",
        "error: wrong-types.yaml:11 Service shop/portless spec.ports: the Service has no ports, so it leads nowhere; add a port [service.no-ports]",
        "error: wrong-types.yaml:16 metadata.name: a Service has no metadata, and is left out; add metadata.name [manifest.no-name]",
        "error: wrong-types.yaml:20 metadata.name: a Service has no metadata, and is left out; add metadata.name [manifest.no-name]",
        "error: wrong-types.yaml:24 Pod shop/web-0 metadata.labels: a list stands where a map is wanted; it is left out [manifest.wrong-type]",
        "error: wrong-types.yaml:24 Pod shop/web-0 spec.containers: a map stands where a list is wanted; it is left out [manifest.wrong-type]",
        "error: wrong-types.yaml:24 Pod shop/web-0 status.conditions: "ready" stands where a list is wanted; it is left out [manifest.wrong-type]",
        "error: wrong-types.yaml:24 Pod shop/web-0 spec.nodeName: 7 stands where text is wanted; it is read as "7"; put it in quotes: "7" [manifest.wrong-type]",
      ]
    `)
  })

  test('bad-addresses.yaml', async () => {
    const { cluster, lines } = await seen('test/bad-input/bad-addresses.yaml')
    expect(cluster.services.get('shop/ranges')).toMatchObject({
      externalIPs: ['192.0.2.1'],
      loadBalancerSourceRanges: ['10.0.0.0/8'],
    })
    expect(cluster.services.get('shop/octal')?.clusterIPs).toEqual([])
    expect(cluster.services.get('shop/mapped')?.clusterIPs).toEqual([])
    expect(lines).toMatchInlineSnapshot(`
      [
        "error: bad-addresses.yaml:1 Service shop/octal spec.clusterIP: "010.0.0.1" has a part with a leading zero, which some programs read as octal; the address is left out; write 10.0.0.1 if that is meant [manifest.bad-address]",
        "error: bad-addresses.yaml:6 Service shop/mapped spec.clusterIP: "::ffff:10.0.0.1" is an IPv4 address written as IPv6; the address is left out; write 10.0.0.1 [manifest.bad-address]",
        "error: bad-addresses.yaml:11 Service shop/ranges spec.externalIPs[1]: "192.0.2.300" is not an IPv4 address: it takes four numbers from 0 to 255; the address is left out [manifest.bad-address]",
        "error: bad-addresses.yaml:11 Service shop/ranges spec.externalIPs[2]: "192.0.2.1/32" is a range, where one address is wanted; the address is left out [manifest.bad-address]",
        "warning: bad-addresses.yaml:11 Service shop/ranges spec.loadBalancerSourceRanges[0]: "10.1.2.3/8" has bits set beyond its length; it is read as 10.0.0.0/8; write 10.0.0.0/8 [manifest.host-bits]",
        "error: bad-addresses.yaml:11 Service shop/ranges spec.loadBalancerSourceRanges[1]: "10.0.0.0/40" is no IP range, as its length is out of range; it is left out; write it as ADDRESS/LENGTH [manifest.bad-cidr]",
        "error: bad-addresses.yaml:21 Node node-a status.addresses[0].address: "172.18.0" is not an IPv4 address: it takes four numbers from 0 to 255; the address is left out [manifest.bad-address]",
        "warning: bad-addresses.yaml:21 Node node-a spec.podCIDR: "10.244.1.9/24" has bits set beyond its length; it is read as 10.244.1.0/24; write 10.244.1.0/24 [manifest.host-bits]",
      ]
    `)
  })

  test('impossible-names.yaml', async () => {
    const { cluster, lines } = await seen('test/bad-input/impossible-names.yaml')
    expect([...cluster.services.keys()]).toEqual(['shop/web'])
    expect(cluster.services.get('shop/web')?.ports.map(({ port }) => port)).toEqual([81, 82])
    expect(lines).toMatchInlineSnapshot(`
      [
        "error: impossible-names.yaml:1 metadata.name: "a\\u001b[31mred" has control characters, blanks, quotes or slashes in it, as no name has; the Service is left out; rename it [manifest.impossible-name]",
        "error: impossible-names.yaml:6 metadata.namespace: "d\\nx" has control characters, blanks, quotes or slashes in it, as no name has; the Service is left out; rename it [manifest.impossible-name]",
        "error: impossible-names.yaml:11 Service shop/web spec.ports[0].name: "a\\u0000" has control characters, blanks, quotes or slashes in it, as no name has; this port is left out; rename it [manifest.impossible-name]",
        "error: impossible-names.yaml:11 Service shop/web spec.ports: the API server refuses these ports: two ports are named "a"; kube-proxy keeps the last of one name and protocol; give each port its own name and number [service.ports-alike]",
      ]
    `)
  })

  test('long-names.yaml', async () => {
    const { cluster, lines } = await seen('test/bad-input/long-names.yaml')
    expect(cluster.services.size + cluster.pods.size).toBe(2)
    expect(lines.map((line) => line.replaceAll('n'.repeat(70), 'NAME'))).toMatchInlineSnapshot(`
      [
        "error: long-names.yaml:1 Service shop/NAME metadata.labels.app: the value has 70 characters, where a label takes at most 63; it is used as it is; shorten it [manifest.bad-label]",
        "error: long-names.yaml:1 Service shop/NAME metadata.name: the API server refuses this name: "NAME" has 70 characters, where the name of a Service takes at most 63; rename it [manifest.bad-name]",
        "error: long-names.yaml:1 Service shop/NAME spec.ports[0].targetPort: the API server refuses this name: "NAME" has 70 characters, where a port name takes at most 15; rename it [manifest.bad-name]",
        "error: long-names.yaml:1 Service shop/NAME spec.ports[0].name: the API server refuses this name: "NAME" has 70 characters, where the name of a port takes at most 63; rename it [manifest.bad-name]",
        "error: long-names.yaml:8 Pod NAME/NAME metadata.namespace: the API server refuses this name: "NAME" has 70 characters, where the name of a Namespace takes at most 63; rename it [manifest.bad-name]",
        "error: long-names.yaml:8 Pod NAME/NAME spec.containers[0].ports[0].name: the API server refuses this name: "NAME" has 70 characters, where a port name takes at most 15; rename it [manifest.bad-name]",
        "error: long-names.yaml:13 StatefulSet shop/NAME: its name has 70 characters, too many for the label its pods would carry; none are implied; shorten the name [workload.name-too-long]",
      ]
    `)
  })
})
