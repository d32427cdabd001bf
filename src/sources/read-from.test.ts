import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Failure } from '#base/failure'
import { parsePrefix } from '#base/prefix'
import { sourceFindings } from './findings'
import { readFrom } from './read-from'
import type { ReadOptions } from './read-text'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portolan-from-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function put(name: string, content: string | Uint8Array): string {
  const path = join(folder, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
  return path
}

const service = (name: string, clusterIP = '10.96.0.20'): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'shop' },
    spec: { clusterIP, ports: [{ port: 80 }] },
  })

/** Names of the Services read, and the findings that are about files or are more than news. */
async function read(paths: readonly string[], options?: ReadOptions) {
  const { value, findings } = await readFrom(paths, options)
  const told = findings.filter(({ code, severity }) => code in sourceFindings || severity !== 'info')
  return { names: [...value.services.values()].map(({ meta }) => meta.name), told, cluster: value }
}

async function failure(paths: readonly string[], options?: ReadOptions): Promise<string> {
  const error = await readFrom(paths, options).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof Failure)) throw new Error('the input was read', { cause: error })
  return `${error.code}: ${error.message}`.replaceAll(`${folder}/`, '')
}

describe('several inputs', () => {
  test('are one cluster, and of one object the later file wins, with a finding', async () => {
    const first = put('first.json', service('web', '10.96.0.20'))
    const second = put('second.yaml', `${service('web', '10.96.0.30')}\n---\n${service('api', '10.96.0.31')}\n`)
    const { names, told, cluster } = await read([first, second])
    expect(names).toEqual(['web', 'api'])
    expect(cluster.services.get('shop/web')?.clusterIPs).toEqual(['10.96.0.30'])
    expect(told).toMatchObject([
      {
        code: 'manifest.duplicate-object',
        origin: { file: second, line: 1 },
        message: `the object was read before, from ${first}; this later one is used`,
      },
    ])
  })

  test('one that cannot be read ends the whole, as half an answer may be a wrong one', async () => {
    const good = put('good.json', service('web'))
    expect(await failure([good, put('bad.json', '')])).toMatch(
      /^input.not-objects: bad.json cannot be used: it is empty;/,
    )
  })

  test('ranges for assumed addresses are passed on', async () => {
    const range = parsePrefix('192.0.2.0/24')?.prefix
    const text = put(
      'a.yaml',
      'apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {ports: [{port: 80}]}\n',
    )
    const { value } = await readFrom([text], { serviceCidrs: range === undefined ? [] : [range] })
    expect(value.services.get('shop/web')?.clusterIPs[0]).toMatch(/^192\.0\.2\./)
  })

  test('no input at all is a mistake in the command', async () => {
    expect(await failure([])).toBe(
      'usage.bad-argument: no input is named; add --from with a file, a folder, or - for standard input',
    )
  })
})

describe('standard input', () => {
  const stdin = (...parts: readonly string[]): ReadOptions => ({
    stdin: Readable.from(parts.map((part) => Buffer.from(part))),
  })

  test('is read for a dash, in whatever pieces it comes', async () => {
    const text = service('web')
    const { names, cluster } = await read(['-'], stdin(text.slice(0, 20), text.slice(20)))
    expect(names).toEqual(['web'])
    expect(cluster.services.get('shop/web')?.meta.origin).toEqual({ file: '-' })
  })

  test('may be packed', async () => {
    expect((await read(['-'], { stdin: Readable.from([gzipSync(service('web'))]) })).names).toEqual(['web'])
  })

  test('that is empty is told by name', async () => {
    expect(await failure(['-'], stdin())).toMatch(/^input.not-objects: standard input cannot be used: it is empty;/)
  })

  test('that breaks off is told by name', async () => {
    async function* broken() {
      yield Buffer.from('{')
      throw new Error('the pipe broke')
    }
    expect(await failure(['-'], { stdin: broken() })).toBe(
      'input.unreadable: standard input cannot be read (the pipe broke); check the file',
    )
  })

  test('can be named once', async () => {
    expect(await failure(['-', '-'])).toBe(
      'usage.bad-argument: standard input (-) is named twice, but can be read once; name it once',
    )
  })
})

describe('a folder', () => {
  test('is read through, in an order of its own, without hidden files and with a word on what is left aside', async () => {
    put('b/2.yml', service('b2'))
    put('b/1.JSON', service('b1', '10.96.0.21'))
    put('a.yaml.gz', gzipSync(service('a', '10.96.0.22')))
    put('notes.txt', 'x')
    put('b/logs.txt', '')
    put('.git/c.yaml', service('hidden'))
    put('.d.yaml', service('hidden'))
    const { names, told } = await read([folder])
    expect(names).toEqual(['a', 'b1', 'b2'])
    expect(told).toMatchObject([
      {
        code: 'source.ignored-files',
        severity: 'info',
        message: `3 files in ${folder} left aside, being hidden or no files of .yaml, .yml, .json or .gz: .d.yaml, logs.txt and notes.txt`,
      },
    ])
  })

  test('with files of no objects: null is told, a List without items only where nothing else is there', async () => {
    put('list.json', '{"kind": "PodList", "apiVersion": "v1", "items": null}')
    expect((await read([folder])).told).toMatchObject([{ code: 'manifest.no-objects', severity: 'warning' }])
    put('null.yaml', 'null\n')
    put('web.yaml', service('web'))
    const { names, told } = await read([folder])
    expect(names).toEqual(['web'])
    expect(told).toMatchObject([{ code: 'manifest.no-objects', origin: { file: join(folder, 'null.yaml') } }])
  })

  test('with what kubectl said in place of objects: the file is left out, and an error is told as one', async () => {
    put('web.yaml', service('web'))
    put('pods.yaml', 'Error from server (Forbidden): pods is forbidden')
    put('table.yaml', 'NAME    READY\nweb-0   1/1\n')
    expect((await read([folder])).told).toMatchObject([
      { code: 'source.unreadable-file', severity: 'error' },
      { code: 'source.foreign-file', severity: 'warning' },
    ])
  })

  test('of kubectl cluster-info dump: typed lists whose items name no kind, and logs', async () => {
    const list = (kind: string, apiVersion: string, ...items: readonly object[]) =>
      JSON.stringify({ kind, apiVersion, metadata: {}, items }, null, 4)
    put(
      'nodes.json',
      list('NodeList', 'v1', {
        metadata: { name: 'node-a' },
        spec: { podCIDR: '10.244.1.0/24' },
        status: { conditions: [{ type: 'Ready', status: 'True' }] },
      }),
    )
    put(
      'shop/pods.json',
      list('PodList', 'v1', {
        metadata: { name: 'web-0', namespace: 'shop' },
        spec: { nodeName: 'node-a' },
        status: { phase: 'Running', podIP: '10.244.1.5', conditions: [{ type: 'Ready', status: 'True' }] },
      }),
    )
    put(
      'shop/services.json',
      list('ServiceList', 'v1', {
        metadata: { name: 'web', namespace: 'shop' },
        spec: { clusterIP: '10.96.0.20', ports: [{ port: 80 }] },
      }),
    )
    put('shop/deployments.json', list('DeploymentList', 'apps/v1'))
    put('shop/replication-controllers.json', list('ReplicationControllerList', 'v1'))
    put('shop/events.json', list('EventList', 'v1', { metadata: { name: 'e', namespace: 'shop' } }))
    put('shop/web-0/logs.txt', '{"not": "ours"')
    const { names, cluster, told } = await read([folder])
    expect(names).toEqual(['web'])
    expect([...cluster.pods.keys(), ...cluster.nodes.keys()]).toEqual(['shop/web-0', 'node-a'])
    expect([...cluster.skippedKinds]).toEqual([['Event', 1]])
    expect(told.map(({ code }) => code)).toEqual(['source.ignored-files'])
  })

  test('with files that are no objects: each is a finding, and the rest is used', async () => {
    put('web.yaml', service('web'))
    put('values.yaml', 'replicas: 3\n')
    put('empty.yaml', '')
    put('picture.yaml', Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 0, 0, 13]))
    put('broken.yaml', 'a:\n\tb: 1\n')
    const { names, told } = await read([folder])
    expect(names).toEqual(['web'])
    expect(told.map(({ code, origin, severity }) => [code, origin?.file.slice(folder.length + 1), severity])).toEqual([
      ['source.unreadable-file', 'broken.yaml', 'error'],
      ['source.foreign-file', 'empty.yaml', 'warning'],
      ['source.foreign-file', 'picture.yaml', 'warning'],
      ['source.foreign-file', 'values.yaml', 'warning'],
    ])
  })

  test('with a file that is cut short ends the whole', async () => {
    put('web.yaml', service('web'))
    put('pods.json', '{"kind": "PodList", "items": [{"meta')
    expect(await failure([folder])).toMatch(
      /^input.unreadable: pods.json cannot be used: the JSON ends too early, at line 1, column 37/,
    )
    put('pods.json', '[]')
    put('more.yaml.gz', gzipSync(service('api')).subarray(0, 60))
    expect(await failure([folder])).toBe(
      'input.unreadable: more.yaml.gz cannot be read: the gzip data ends too early; write the file again',
    )
  })

  test('without anything to use is told, with the first reason', async () => {
    put('notes.txt', 'x')
    expect(await failure([folder])).toContain(
      'holds no file with Kubernetes objects; files are read whose names end in .yaml, .yml, .json or .gz',
    )
    put('values.yaml', 'replicas: 3\n')
    expect(await failure([folder])).toContain(
      'holds no file with Kubernetes objects: in values.yaml, the file is left out: line 1: the map is no Kubernetes object',
    )
  })

  test('that links to itself is walked once', async () => {
    put('web.yaml', service('web'))
    symlinkSync(folder, join(folder, 'again'))
    expect((await read([folder])).names).toEqual(['web'])
  })
})

describe('a path that leads nowhere', () => {
  test.each([
    ['pods.yml', 'there is no file or folder pods.yml; did you mean pods.yaml?'],
    ['Pods.json', 'there is no file or folder Pods.json; did you mean pods.yaml?'],
    ['podz.yaml', 'there is no file or folder podz.yaml; did you mean pods.yaml?'],
    ['nodes.yaml', 'there is no file or folder nodes.yaml; check the path'],
    ['ci.yaml', 'there is no file or folder ci.yaml; check the path'],
    ['pods.yaml/x', 'there is no file or folder pods.yaml/x; nor is there a folder pods.yaml; check the path'],
    ['no/pods.yaml', 'there is no file or folder no/pods.yaml; nor is there a folder no; check the path'],
  ])('%s', async (name, message) => {
    put('pods.yaml', service('web'))
    put('.ci', 'a hidden file that nobody means')
    expect(await failure([join(folder, name)])).toBe(`input.unreadable: ${message}`)
  })
})

test('a file beyond what one text can hold is refused before it is read, with the remedy', async () => {
  const path = put('huge.json', '{')
  truncateSync(path, 600_000_000)
  expect(await failure([path])).toBe(
    'input.too-large: huge.json holds more than 536 MB, the most that can be read at once; split it into several files, or take fewer kinds or namespaces with kubectl get',
  )
})

test('every finding code says what it means in one sentence', () => {
  for (const [code, { meaning }] of Object.entries(sourceFindings)) expect(meaning, code).toMatch(/^[A-Z].*\.$/)
})
