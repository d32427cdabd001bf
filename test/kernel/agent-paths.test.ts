/** Networks of path classes by VPC: real packets take the class that the setting gives their remote end, as both evaluators do. */
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { parseIp } from '#base/ip'
import { compilePolicy } from '#compile/traffic-policy/compile-policy'
import { evaluateEntries } from '#compile/traffic-policy/evaluate-entries'
import { evaluatePolicy } from '#compile/traffic-policy/evaluate-policy'
import { findPathPrefix, readPathPrefixes } from '#enforce/path-prefixes'
import { openAttacher } from '#kernel/datapath'
import { readDatapath } from '#kernel/read-datapath'
import { parseCluster } from '#manifests/parse-cluster'
import { attachment, binding, echo, policy } from '../agent/traffic-objects'
import { type KernelNode, kernelNode } from './agent-kernel'
import { type AgentFiles, type AgentProcess, agentFiles, spawnAgent, until } from './agent-process'
import { describeKernel } from './describe-kernel'

const rules = [{ ...echo, match: { protocols: ['ICMP'], paths: ['Private'] } }]
const objects = [
  attachment('web', { device: 'v1' }),
  binding('web', { ingress: 'ping', egress: 'ping' }),
  policy('ping', { rules }),
]

describeKernel('path classes by networks of the VPC', () => {
  let node: KernelNode
  let files: AgentFiles
  let folder: string
  let agent: AgentProcess

  beforeAll(async () => {
    node = kernelNode()
    files = agentFiles()
    folder = mkdtempSync(join(tmpdir(), 'portolan-paths-'))
    node.attach('v1')
    const attacher = openAttacher({ folder: node.folder })
    attacher.attach({ name: 'v1', namespacePath: `/run/netns/${node.host}`, side: 'host', vpc: 7 })
    attacher.close()
    files.write(objects)
    write('- vpc: 7\n  Internet: [10.0.0.0/8]\n')
    start()
    await until('it is published', () => files.entry('tenant/web')?.egress?.state === 'Applied', 20_000, agent.output)
  })
  afterEach(() => write('- vpc: 7\n  Internet: [10.0.0.0/8]\n'))
  afterAll(async () => {
    agent.child.kill('SIGTERM')
    await agent.ended
    node.close()
    files.remove()
    rmSync(folder, { recursive: true })
  })

  const setting = (): string => join(folder, 'paths.yaml')
  const start = (...more: string[]): void => {
    const own = [
      '--node',
      'n1',
      '--from',
      files.from,
      '--status',
      files.status,
      '--bpffs',
      node.folder,
      '--mode',
      'enforce',
    ]
    agent = spawnAgent([...own, '--metrics-listen', 'none', '--path-prefixes', setting(), ...more], {
      namespace: node.host,
    })
  }
  const write = (text: string): void => {
    writeFileSync(`${setting()}.part`, text)
    renameSync(`${setting()}.part`, setting())
  }
  const passes = (): boolean => node.passes('v1', 'egress')
  const rows = (): number => {
    const datapath = readDatapath({ folder: node.folder })
    const { length } = datapath.pathPrefixes()
    datapath.close()
    return length
  }
  /** By the policy as written, and by its entries; the remote end of what the workload sends is the destination. */
  const evaluated = (): readonly boolean[] => {
    const { value } = parseCluster(
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [policy('ping', { rules })] }),
    )
    const one = value.trafficPolicies.get('tenant/ping')
    const reading = readPathPrefixes(readFileSync(setting(), 'utf8'))
    const compilation = one === undefined ? undefined : compilePolicy(one)
    if (one?.spec === undefined || compilation?.kind !== 'compiled' || reading.kind !== 'prefixes')
      throw new Error('it is good')
    const ends = node.addressesOf('v1')
    const [source, destination] = [parseIp(ends.workload), parseIp(ends.host)]
    if (source === undefined || destination === undefined) throw new Error('they are addresses')
    const path = findPathPrefix(reading.prefixes, 7, destination)?.path ?? 'unclassified'
    const packet = { source, destination, protocol: 'icmp', icmpType: 8, icmpCode: 0, path } as const
    return [evaluatePolicy(one.spec, packet), evaluateEntries(compilation.compiled, packet)].map(
      ({ verdict }) => verdict === 'allow',
    )
  }

  test.each<[string, string, boolean]>([
    ['a network of the class', '- vpc: 7\n  Private: [10.0.0.0/8]\n', true],
    ['of another class', '- vpc: 7\n  Internet: [10.0.0.0/8]\n', false],
    ['of another VPC', '- vpc: 8\n  Private: [10.0.0.0/8]\n', false],
    ['a narrower one', '- vpc: 7\n  Internet: [0.0.0.0/0]\n  Private: [10.9.0.0/16]\n', true],
    ['a narrower one of another class', '- vpc: 7\n  Private: [0.0.0.0/0]\n  Edge: [10.9.0.0/16]\n', false],
    ['a part without a class', '- vpc: 7\n  Private: [0.0.0.0/0]\n  unclassified: [10.9.0.0/16]\n', false],
    ['one address', '- vpc: 7\n  Private: [10.9.1.1/32]\n', true],
    ['none at all', '[]', false],
  ])('%s: in force with the file’s change, and the same for both evaluators', async (_, text, isAllowed) => {
    write(text)
    await until('it is in force', () => passes() === isAllowed, 5000, agent.output)
    expect(evaluated()).toEqual([isAllowed, isAllowed])
    const reading = readPathPrefixes(text)
    expect(rows()).toBe(reading.kind === 'prefixes' ? reading.prefixes.length : -1)
  })

  test('a file that is spoilt, reversed, emptied of sense or gone counts on as it was, and the log says why', async () => {
    write('- vpc: 7\n  Private: [10.0.0.0/8]\n')
    await until('it is in force', passes, 5000, agent.output)
    const told = async (spoil: () => void, why: RegExp): Promise<void> => {
      const before = agent.output().length
      spoil()
      await until(String(why), () => why.test(agent.output().slice(before)), 5000, agent.output)
      expect(passes()).toBe(true)
    }
    await told(() => write('- vpc: 7\n  Private: [10.0.0.0/8\n'), /paths\.yaml is not used: line \d+: it is no YAML/)
    await told(
      () => write('- vpc: 7\n  Private: [10.0.0.255-10.0.0.0]\n'),
      /is no network of ADDRESS\/LENGTH.*count on/,
    )
    await told(() => write('- vpc: 7\n  Private: [10.0.0.9/8]\n'), /has bits set beyond its length; write the network/)
    await told(() => write('Private: 10.0.0.0/8\n'), /paths\.yaml is not used: /)
    await told(() => rmSync(setting()), /there is no file or folder .*paths\.yaml.*count on/)
    write('- vpc: 7\n  Private: [10.0.0.0/8]\n  Internet: [192.0.2.0/24]\n')
    await until('it is read again', () => rows() === 2, 5000, agent.output)
  })

  test('a restart changes nothing; one without the setting leaves the networks that were set', async () => {
    write('- vpc: 7\n  Private: [10.0.0.0/8]\n')
    await until('it is in force', passes, 5000, agent.output)
    agent.child.kill('SIGKILL')
    await agent.ended
    expect(passes()).toBe(true)
    start()
    await until('it has started', () => agent.output().includes('mode enforce'), 20_000, agent.output)
    expect(passes()).toBe(true)
    expect(agent.output()).not.toMatch(/networks of path classes are set/)
  })

  test('a setting that is wrong at the start is a slip: exit code 2, and nothing changes', async () => {
    const wrong = join(folder, 'wrong.yaml')
    writeFileSync(wrong, '- vpc: 7\n  Privat: [10.0.0.0/8]\n')
    const own = ['--node', 'n2', '--from', files.from, '--bpffs', node.folder]
    const refused = spawnAgent([...own, '--metrics-listen', 'none', '--path-prefixes', wrong])
    expect(await refused.ended).toBe(2)
    expect(refused.output()).toMatch(
      /--path-prefixes .*wrong\.yaml cannot be used:\n\[0\]\.Privat: there is no such field; /,
    )
  })
})
