/** The three commands as a user runs them: a broker as a process, questions to it, its start-up line, its refusals and its end. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runPortolan } from '../../src/cli/run-portolan'
import { quietIo, runWords as run } from '../run-words'
import { type BrokerProcess, buildProgram, startProcess } from './broker-process'
import { flowPost, podPost, servicePost } from './messages'

const folder = mkdtempSync(join(tmpdir(), 'portolan-commands-'))
const token = 'reads-and-writes-0123456789'
const tokenFile = join(folder, 'token')

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('against a broker', () => {
  let broker: BrokerProcess
  const minutesAgo = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString().slice(0, -5)
  const authorization = { Authorization: `Bearer ${token}` }

  beforeAll(async () => {
    buildProgram()
    writeFileSync(tokenFile, `${token}\n`)
    broker = await startProcess(['--data', join(folder, 'data'), '--token-ingest-file', tokenFile])
    const pod = { start: `${minutesAgo(60)}Z`, seen: minutesAgo(0) }
    await broker.send(
      '/pod/spec',
      podPost({ ...pod, name: 'web-1', ip: '10.7.0.1', workload: 'Deployment/web' }),
      authorization,
    )
    await broker.send('/pod/spec', podPost({ ...pod, name: 'db-0', namespace: 'db', ip: '10.7.0.2' }), authorization)
    const flow = { pod: 'db-0', namespace: 'db', ip: '10.7.0.2', time: minutesAgo(5) }
    await broker.send(
      '/pod/traffic/batch',
      [
        flowPost({ ...flow, peer: '10.7.0.1' }),
        flowPost({ ...flow, type: 'EGRESS', peer: '203.0.113.9', peerPort: '443', decision: 'DROP' }),
      ],
      authorization,
    )
  }, 180_000)
  afterAll(async () => {
    expect(await broker?.end('SIGTERM')).toBe(0)
  })

  const ask = (...line: readonly string[]) => run([...line, '--broker', broker.url, '--token-file', tokenFile])

  test('the start-up line says where, on what, and what that does not survive', () => {
    expect(broker.output()).toMatch(
      /^portolan broker \S+ answers on http:\/\/127\.0\.0\.1:\d+ \(API at .*\/docs\); database: embedded in /m,
    )
    expect(broker.output()).toMatch(/survives a killed process, not a power cut/)
    expect(broker.output()).not.toContain(token)
  })

  test('flows is a table of who connected to whom', async () => {
    const { code, out } = await ask('flows')
    expect(code).toBe(0)
    expect(out).toMatch(/^LAST SEEN +FROM +TO +PORT +VERDICT +SEEN$/m)
    expect(out).toMatch(/ shop\/web-1 +db\/db-0 +3306\/TCP +ALLOW +1$/m)
    expect(out).toMatch(/ db\/db-0 +203\.0\.113\.9 +443\/TCP +DROP +1$/m)
  })

  test('filters, negation, width and JSON', async () => {
    expect((await ask('flows', '--from-namespace', 'shop')).out.split('\n')).toHaveLength(3)
    expect((await ask('flows', '--not', 'verdict=ALLOW')).out).not.toContain('web-1')
    const wide = await ask('flows', '-o', 'wide', '--verdict', 'DROP')
    expect(wide.out).toContain('nobody is known to have held it')
    const json = await ask('flows', '-o', 'json', '--port', '3306')
    expect(JSON.parse(json.out)).toMatchObject({
      peer: { name: 'web-1', workload: { kind: 'Deployment', name: 'web' } },
    })
    const none = await ask('flows', '-n', 'nowhere')
    expect([none.code, none.out, none.err]).toEqual([0, '', 'no flow fits\n'])
  })

  test('who answers 0 with the holder and why, 1 when nobody had it', async () => {
    const held = await ask('who', '10.7.0.1')
    expect(held.code).toBe(0)
    expect(held.out).toMatch(
      /^10\.7\.0\.1 at .*\n {2}pod +shop\/web-1 {2}\(uid .*\)\n {2}workload +Deployment web\n {2}since +.*Z\n {2}until +still there\n/,
    )
    const before = await ask('who', '10.7.0.1', '--at', '2h')
    expect([before.code, before.out]).toEqual([1, expect.stringContaining('started only after that')])
    const never = await ask('who', '10.7.0.77', '-o', 'json')
    expect([never.code, JSON.parse(never.out)]).toMatchObject([1, { answer: 'never-held', holder: null }])
    expect((await ask('who', '10.7.0.1', '-o', 'wide')).out).toMatch(/^FROM +UNTIL +KIND +NAME +WORKLOAD +ENDED$/m)
  })

  test('who IP:PORT names the Service of a node port, and whoever has the address for other ports', async () => {
    const agent = {
      name: 'agent-x',
      ip: '10.7.9.1',
      hostNetwork: true,
      start: `${minutesAgo(60)}Z`,
      seen: minutesAgo(0),
    }
    await broker.send('/pod/spec', podPost(agent), authorization)
    const ports = [{ port: 53, protocol: 'UDP', nodePort: 30_053 }]
    const service = servicePost({ name: 'names', ip: '10.96.0.53', spec: { type: 'NodePort', ports } })
    await broker.send('/svc/spec', service, authorization)
    const named = await ask('who', '10.7.9.1:30053/UDP')
    expect([named.code, named.out]).toEqual([0, expect.stringMatching(/\n {2}service +shop\/names/)])
    for (const other of ['10.7.9.1:30053', '10.7.9.1:53/UDP', '10.7.9.1']) {
      expect((await ask('who', other)).out).toMatch(/\n {2}node +shop\/agent-x/)
    }
    const { status } = await broker.get('/api/v1/addresses/10.7.9.1?port=0', authorization)
    expect(status).toBe(400)
  })

  test('a token that is missing is told with the remedy', async () => {
    const { code, err } = await run(['who', '10.7.0.1', '--broker', broker.url])
    expect([code, err]).toEqual([2, expect.stringMatching(/refused \(401\).*PORTOLAN_TOKEN or --token-file/)])
  })

  test('a second broker on the same directory is refused by its name', async () => {
    await expect(startProcess(['--data', join(folder, 'data')])).rejects.toThrow(/ended with 2: [\s\S]*data/)
  })

  test('flows --follow shows what arrives', async () => {
    let out = ''
    const following = runPortolan(
      ['flows', '--follow', '--pod', 'late/', '--broker', broker.url, '--token-file', tokenFile],
      {
        ...quietIo,
        out: (text) => {
          out += text
        },
      },
    )
    void following.catch(() => {})
    await sleep(500)
    await broker.send(
      '/pod/traffic',
      flowPost({ pod: 'follower', namespace: 'late', peer: '10.7.0.1', time: minutesAgo(0) }),
      authorization,
    )
    while (!out.includes('late/follower')) await sleep(50)
    expect(out).toMatch(/shop\/web-1 +late\/follower +3306\/TCP/)
  })
})

test.each([
  [['who', '010.0.0.1'], /leading zero/],
  [['who', '10.0.0.1:70000'], /70000 is not a port/],
  [['who', '10.0.0.1', '--at', 'soon'], /--at soon: write a time/],
  [
    ['who', '10.0.0.1', '--broker', 'http://127.0.0.1:9'],
    /no broker answers on http:\/\/127\.0\.0\.1:9: .*start one with portolan broker/,
  ],
  [['who', '10.0.0.1', '--broker', 'nonsense'], /--broker nonsense: write a URL/],
  [['flows', '--port', 'http'], /--port must be a port/],
  [['flows', '--not', 'nothing'], /--not nothing: write FILTER=VALUE/],
  [['flows', '--limit', '0'], /no number from 1 up/],
  [['broker', '--listen', '0.0.0.0:0', '--data', ':memory:'], /no token is set/],
  [['broker', '--listen', 'here'], /--listen here: write IP:PORT/],
  [['broker', '--data', 'x', '--database', 'postgres://y'], /leave one out/],
  [['broker', '--database', 'mysql://root:secret@x/y'], /mysql:\/\/root:…@x\/y: write postgres:/],
  [['broker', '--late-resolve-window', 'soon'], /"soon" is no whole number/],
  [['broker', '--token-read-file', '/nowhere'], /--token-read-file \/nowhere cannot be read/],
])('%j ends with 2 and a sentence', async (line, sentence) => {
  const { code, out, err } = await run(line)
  expect([code, out]).toEqual([2, ''])
  expect(err).toMatch(sentence)
  expect(err).not.toContain('secret')
})
