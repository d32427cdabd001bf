/** `portolan agent attach` and `agent mode` on veth pairs: what they do, what they say, and that a refusal leaves nothing. */

import { spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Captured } from '#cli/capture'
import { datapathVersion } from '#compile/traffic-policy/datapath-maps'
import { openDatapath } from '#kernel/datapath'
import { runWords } from '../run-words'
import { agentFiles, spawnAgent, until } from './agent-process'
import { type BpffsFolder, createBpffsFolder } from './bpffs-folder'
import { allowAll, bringUp, createPair, denyAll, hostIp, pings, requestOf, workloadIp } from './datapath-lab'
import { describeKernel } from './describe-kernel'
import { inside, removeNamespaces } from './namespace'
import { mustRun, runCommand } from './run-command'

function portolan(...argv: readonly string[]): Promise<Captured> {
  return runWords(argv)
}

/** Everything under a folder, by path. */
function treeOf(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
}

describeKernel('the commands of a node', () => {
  let folder: BpffsFolder
  let bpffs: string
  let pair: ReturnType<typeof createPair>

  beforeAll(() => {
    folder = createBpffsFolder()
    bpffs = join(folder.path, 'portolan')
    pair = createPair()
  })
  afterEach(() => {
    delete process.env.PORTOLAN_FAULTS
    delete process.env.GALACTIC_CNI_TRAFFIC_POLICY
  })
  afterAll(() => {
    removeNamespaces([pair.host, pair.workload])
    folder.remove()
  })

  const attach = (...more: readonly string[]): Promise<Captured> =>
    portolan('agent', 'attach', 'host0', '--netns', pair.host, '--side', 'host', '--bpffs', bpffs, ...more)
  const mode = (...more: readonly string[]): Promise<Captured> => portolan('agent', 'mode', '--bpffs', bpffs, ...more)

  test('what cannot be is refused before anything is made: no memory, no load, no interface, no namespace', async () => {
    const before = treeOf(folder.path)
    const refused = async (faults: string, ...argv: readonly string[]): Promise<string> => {
      process.env.PORTOLAN_FAULTS = faults
      const { code, out, err } = await portolan('agent', 'attach', ...argv)
      expect([code, out], err).toEqual([2, ''])
      expect(treeOf(folder.path)).toEqual(before)
      return err
    }
    const there = ['host0', '--netns', pair.host, '--bpffs', bpffs]
    expect(await refused('no-memory', ...there)).toMatch(/tp_counters.* failed: there is not enough memory; raise /)
    expect(await refused('refused-load', ...there)).toMatch(/loading the program .+ failed: the verifier/)
    expect(await refused('toString', ...there)).toMatch(/"toString" is not a fault; known are no-tcx/)
    expect(await refused('', 'no0', '--netns', pair.host, '--bpffs', bpffs)).toMatch(/no interface no0 in \/run\/netns/)
    expect(await refused('', 'host0', '--netns', 'none', '--bpffs', bpffs)).toMatch(/\/run\/netns\/none could not be/)
    expect(await refused('', 'host0', '--netns', '/etc/passwd', '--bpffs', bpffs)).toMatch(/is no network namespace/)
    const by = (path: string): Promise<string> => refused('', 'host0', '--netns', pair.host, '--bpffs', path)
    expect(await by(`${bpffs}/my.pins`)).toMatch(/names on a bpffs hold no dots \(EPERM\); give a folder without one/)
    expect(await by(`${bpffs}/${'x'.repeat(256)}`)).toMatch(/too long \(ENAMETOOLONG\); give a shorter one/)
    expect(await by(`${folder.path}/maps.debug`)).toMatch(/is no folder \(E[A-Z]+\); give the folder of a bpffs/)
    expect(await refused('', 'host0', '--netns', pair.host, '--bpffs', '/tmp')).toMatch(/mount -t bpf bpf \/tmp/)
    mustRun(['mount', '-o', 'remount,ro', folder.path])
    expect(await refused('', ...there)).toMatch(/cannot be written to: it is mounted read-only .*remount,rw/)
    mustRun(['mount', '-o', 'remount,rw', folder.path])
    expect(await mode()).toMatchObject({ code: 3, out: 'unknown\n' })
    expect(treeOf(folder.path)).toEqual(before)
  })

  test('attached before link-up it denies from the first packet; again is the same lifetime; modes are read back', async () => {
    process.env.GALACTIC_CNI_TRAFFIC_POLICY = 'enforce'
    const first = await attach('-o', 'json')
    expect(first, first.err).toMatchObject({ code: 0, err: '' })
    const shown = JSON.parse(first.out)
    expect(shown).toMatchObject({ interface: 'host0', side: 'host', hooks: 'tcx', mode: 'enforce', attached: 'now' })
    bringUp(pair.host, pair.workload)
    expect([pings(pair.workload, hostIp), pings(pair.host, workloadIp)]).toEqual([false, false])
    expect(await mode('audit')).toEqual({ code: 0, out: 'audit\n', err: '' })
    // Who was not answered before waits a while before asking again.
    for (const [end, device] of [
      [pair.host, 'host0'],
      [pair.workload, 'eth0'],
    ] as const)
      mustRun(['ip', '-n', end, 'neigh', 'flush', 'dev', device])
    expect([pings(pair.workload, hostIp), pings(pair.host, workloadIp)]).toEqual([true, true])
    expect(await mode('-o', 'json')).toMatchObject({ code: 0, out: '{\n  "mode": "audit"\n}\n' })
    // The mode of the node is not the CNI chain's to change back.
    const second = await attach('-o', 'json', '--vpc', '7')
    expect(JSON.parse(second.out)).toEqual({ ...shown, vpc: 7, mode: 'audit', attached: 'before' })
    expect(second.err).toMatch(/set before and stays; change it with portolan agent mode enforce/)
    expect(JSON.parse((await attach('-o', 'json')).out)).toMatchObject({ token: shown.token, vpc: 7 })
    const turned = await portolan('agent', 'attach', 'host0', '--netns', pair.host, '--bpffs', bpffs)
    expect(turned).toMatchObject({ code: 2, err: expect.stringMatching(/attached as the host end already/) })
    expect((await mode('off')).out).toBe('off\n')
    expect((await attach()).err).toMatch(/the mode is off: nothing is denied until portolan agent mode enforce/)
    expect((await mode('enforce')).out).toBe('enforce\n')
    expect(pings(pair.workload, hostIp)).toBe(false)
  })

  test('a kernel that cannot do it is unsupported, what cannot be read is unknown, and off is always possible', async () => {
    expect((await mode('audit')).code).toBe(0)
    process.env.PORTOLAN_FAULTS = 'refused-load'
    const unsupported = await mode()
    expect(unsupported).toMatchObject({ code: 1, out: 'unsupported\n' })
    expect(unsupported.err).toMatch(
      /audit was set, and this node cannot do it: nothing is protected\nloading the program/,
    )
    const refused = await mode('enforce')
    expect(refused).toMatchObject({ code: 2, out: '', err: expect.stringMatching(/the verifier or the mount refused/) })
    delete process.env.PORTOLAN_FAULTS
    expect((await mode()).out).toBe('audit\n')
    process.env.PORTOLAN_FAULTS = 'refused-load'
    expect(await mode('off')).toMatchObject({ code: 0, out: 'off\n' })
    delete process.env.PORTOLAN_FAULTS
    expect(await mode('enforce')).toMatchObject({ code: 0, out: 'enforce\n' })
    mustRun(['mount', '-o', 'remount,ro', folder.path])
    expect(await mode()).toMatchObject({ code: 0, out: 'enforce\n' })
    expect(await mode('off')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/read-only; mount the bpffs read-write/),
    })
    mustRun(['mount', '-o', 'remount,rw', folder.path])
    expect(await portolan('agent', 'mode', '--bpffs', '/nowhere/bpf')).toMatchObject({
      code: 3,
      out: 'unknown\n',
      err: 'there is no folder /nowhere/bpf; name the one on the bpffs with --bpffs\n',
    })
  })

  test('it attaches beside an agent that holds the folder, which then publishes to it', async () => {
    const datapath = openDatapath({ folder: bpffs })
    const other = createPair()
    const answer = await portolan('agent', 'attach', 'eth0', '--netns', other.workload, '--bpffs', bpffs, '-o', 'json')
    expect(JSON.parse(answer.out)).toMatchObject({ interface: 'eth0', side: 'workload', attached: 'now' })
    bringUp(other.host, other.workload)
    datapath.setMode('enforce')
    expect(pings(other.workload, hostIp)).toBe(false)
    const held = datapath.interfaces().find(({ slot }) => slot === JSON.parse(answer.out).slot)
    if (held === undefined) throw new Error('the agent sees what was attached')
    datapath.publish([requestOf(held, 'egress', allowAll), requestOf(held, 'ingress', denyAll)])
    expect([pings(other.workload, hostIp), pings(other.host, workloadIp)]).toEqual([true, false])
    datapath.close()
    removeNamespaces([other.host, other.workload])
  })

  test('two at once on one folder: each has a slot of its own', () => {
    const pairs = [createPair(), createPair()]
    const fresh = join(folder.path, 'at-once')
    const started = pairs.map(({ host }) => `${attachAlone(fresh, `/run/netns/${host}`).map(quote).join(' ')} &`)
    const done = runCommand(['sh', '-c', `${started.join('\n')}\nwait`])
    expect(done.ok, done.output).toBe(true)
    expect(done.output.trim().split('\n').sort()).toEqual(['slot 1 is new', 'slot 2 is new'])
    removeNamespaces(pairs.flatMap(({ host, workload }) => [host, workload]))
  })

  test('the three capabilities are enough in its own namespace, and without them it says which', () => {
    const mine = join(folder.path, 'mine')
    mkdirSync(mine)
    chownSync(mine, 65534, 65534)
    chownSync(folder.path, 65534, 65534)
    const caps = '+bpf,+net_admin,+perfmon'
    const as = (set: readonly string[]): ReturnType<typeof spawnSync> => {
      const [program = '', ...args] = inside(pair.host, ['setpriv', '--reuid=65534', '--clear-groups', ...set])
      return spawnSync(program, [...args, ...attachAlone(mine)], { encoding: 'utf8' })
    }
    const without = as(['--bounding-set=-all', '--inh-caps=-all'])
    expect(without.stdout).toMatch(
      /tp_counters.* failed: it is not permitted; run with the capabilities BPF, NET_ADMIN and/,
    )
    expect(treeOf(mine)).toEqual([])
    const enough = as([`--inh-caps=-all,${caps}`, `--ambient-caps=-all,${caps}`, `--bounding-set=-all,${caps}`])
    expect(enough.stdout, String(enough.stderr)).toBe('slot 1 is new\n')
  })

  test('the folder of a former version and a half-made one are in nobody’s way; names with dots are names', async () => {
    const dotted = createPair()
    mustRun(['ip', '-n', dotted.host, 'link', 'set', 'host0', 'name', 'eth0.100-x.y'])
    mkdirSync(join(bpffs, 'v0', 'tp_links'), { recursive: true })
    const answer = await portolan('agent', 'attach', 'eth0.100-x.y', '--netns', dotted.host, '--bpffs', bpffs)
    expect(answer.out, answer.err).toMatch(/^interface +eth0\.100-x\.y$/m)
    expect(treeOf(join(bpffs, `v${datapathVersion}`, 'tp_links')).join()).not.toMatch(/\./)
    removeNamespaces([dotted.host, dotted.workload])
  })
})

/** A process that does what the command does, without the rest of the command line. */
function attachAlone(folder: string, namespacePath?: string): readonly string[] {
  const request = JSON.stringify({ name: 'host0', side: 'host', folder, namespacePath })
  const script = `import('#kernel/attach-once').then(({ attachOnce }) => {
    const { held, isNew } = attachOnce(${request})
    console.log('slot ' + held.slot + (isNew ? ' is new' : ' was there'))
  }).catch((error) => console.log(error.message))`
  return [process.execPath, '--import', 'tsx', '-e', script]
}

function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`
}

describeKernel('the pages', () => {
  test('README.md: the commands of a node', async () => {
    const folder = createBpffsFolder()
    const { host, workload } = createPair()
    const lines = [...readFileSync('README.md', 'utf8').matchAll(/^npx portolan (agent (?:attach|mode)\b.*?) +#/gm)]
    expect(lines.length).toBe(2)
    for (const [, line = ''] of lines) {
      const words = line.replace('--netns workload', `--netns ${workload}`).split(/ +/)
      const answer = await portolan(...words, '--bpffs', folder.path)
      expect(answer, line).toMatchObject({ code: 0, out: expect.stringMatching(/\benforce$/m) })
    }
    removeNamespaces([host, workload])
    folder.remove()
  })

  test('README.md: the agent of a node', async () => {
    const folder = createBpffsFolder()
    const files = agentFiles()
    const { host, workload } = createPair()
    const [line] = /^npx portolan agent (--node .+?) +&/m.exec(readFileSync('README.md', 'utf8'))?.slice(1) ?? []
    const words = (line ?? '').replace('--status status', `--status ${files.status}`).split(/ +/)
    const agent = spawnAgent([...words, '--bpffs', folder.path], { namespace: host })
    await until('it tells of the binding', () => existsSync(files.status), 20_000, agent.output)
    agent.child.kill('SIGTERM')
    expect(await agent.ended, agent.output()).toBe(0)
    removeNamespaces([host, workload])
    folder.remove()
    files.remove()
  })
})
