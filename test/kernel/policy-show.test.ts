/** `portolan policy show` beside a datapath that an agent holds: what it tells is what the kernel has, and it changes nothing. */

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Captured } from '#cli/capture'
import { compilePolicy } from '#compile/traffic-policy/compile-policy'
import { foldersOf } from '#kernel/datapath-tables'
import { readDatapath } from '#kernel/read-datapath'
import { parseCluster } from '#manifests/parse-cluster'
import { runWords } from '../run-words'
import { hostIp, hostIp6, type Lab, openLab, pings } from './datapath-lab'
import { describeKernel } from './describe-kernel'
import { mustRun } from './run-command'

const objects = (generation: number, ruleName = 'ping'): string => `apiVersion: portolan.dev/v1alpha1
kind: VPCAttachment
metadata: {namespace: tenant, name: web-0}
status: {node: n1, hostInterface: host0}
---
apiVersion: portolan.dev/v1alpha1
kind: TrafficPolicyBinding
metadata: {namespace: tenant, name: web-0}
spec: {vpcAttachmentRef: {name: web-0}, egressPolicyRef: {name: out}}
---
apiVersion: portolan.dev/v1alpha1
kind: TrafficPolicy
metadata: {namespace: tenant, name: out, uid: u1, generation: ${generation}}
spec:
  stateful: false
  rules:
    - {name: ${ruleName}, action: Allow, match: {protocols: [ICMP]}}
    - {name: six, action: Deny, match: {ipFamily: IPv6}}
`

describeKernel('policy show', () => {
  let lab: Lab
  let folder: string
  let file: string

  beforeAll(() => {
    lab = openLab()
    folder = mkdtempSync(join(tmpdir(), 'portolan-show-'))
    file = join(folder, 'objects.yaml')
    writeFileSync(file, objects(7))
    // Nothing is dropped, so that the answers come too and are counted.
    lab.datapath.setMode('audit')
    publishObjects(objects(7))
  })
  afterAll(() => {
    lab.close()
    rmSync(folder, { recursive: true, force: true })
  })

  function publishObjects(text: string): void {
    const policy = parseCluster(text).value.trafficPolicies.get('tenant/out')
    const compilation = policy === undefined ? undefined : compilePolicy(policy)
    if (compilation?.kind !== 'compiled') throw new Error('the policy does not compile')
    const { slot, token } = lab.held
    lab.datapath.publish([{ slot, token, direction: 'egress', policy: compilation.compiled }])
  }

  function show(more: readonly string[] = [], bpffs = lab.folder.path): Promise<Captured> {
    const words = ['policy', 'show', 'tenant/web-0', '--from', file, '--node', 'n1', '--bpffs', bpffs]
    return runWords([...words, ...more])
  }

  test('75 and 76: hits of each rule, the fallback counts, and nothing bound the other way', async () => {
    expect(pings(lab.workload, hostIp)).toBe(true)
    expect(pings(lab.workload, hostIp6)).toBe(true)
    const before = readdirSync(lab.folder.path, { recursive: true }).sort()
    const { out, code } = await show(['-o', 'json'])
    expect(code).toBe(0)
    const { mode, directions } = JSON.parse(out)
    expect(mode).toBe('audit')
    const [ingress, egress] = directions
    expect(ingress.snapshot).toBeNull()
    expect(ingress.noSnapshot).toBe(
      'none: every packet is denied as policy_unavailable; the policy and the status above say why',
    )
    // Three answers of each family, and the host's neighbour discovery.
    expect(ingress.fallbacks.policy_unavailable).toBeGreaterThanOrEqual(6)
    expect(egress.snapshot).toMatchObject({
      policy: 'tenant/out',
      generation: 7,
      clusterGeneration: 7,
      stateful: false,
    })
    const [ping, six] = egress.snapshot.rules
    expect(ping).toMatchObject({ name: 'ping', index: 0, action: 'allow', hits: 3, bytes: 3 * 98 })
    expect(six).toMatchObject({ name: 'six', index: 1, action: 'deny', hits: 3 })
    expect(readdirSync(lab.folder.path, { recursive: true }).sort()).toEqual(before)
  })

  test('75: names until the cluster’s policy is edited, numbers then, and names again once it is installed', async () => {
    expect((await show()).out).toMatch(/^ {2}ping \(#0\) {2}allow {3}3 {5}294\n {2}six \(#1\) {3}deny {4}3 /m)
    writeFileSync(file, objects(8, 'echo'))
    const edited = await show()
    expect(edited.out).toContain('tenant/out, generation 7 of 8, publication 1')
    expect(edited.out).toMatch(/^ {2}#0 {4}allow {3}3/m)
    publishObjects(objects(8, 'echo'))
    const installed = await show()
    expect(installed.out).toMatch(/^ {2}echo \(#0\) {2}allow {3}0/m)
    // The other rule kept its name, its action and so its count.
    expect(installed.out).toMatch(/^ {2}six \(#1\) {3}deny {4}3/m)
  })

  test('a datapath that an agent holds is read all the same, and a folder without one is told', async () => {
    const reading = readDatapath({ folder: lab.folder.path })
    expect(reading.interfaces.map(({ name, token }) => ({ name, token }))).toEqual([
      { name: 'host0', token: lab.held.token },
    ])
    expect(reading.isHere(lab.held)).toBe(false)
    expect(reading.direction(lab.held.slot, 'ingress').bound).toBeUndefined()
    reading.close()
    const none = `${lab.folder.path}/none`
    const { out, code } = await show([], none)
    expect(out).toContain(`datapath    not read: there is no folder ${none}`)
    expect(code).toBe(3)
    expect(() => readDatapath({ folder: none })).toThrow(/holds no datapath/)
  })

  test('a snapshot whose pin was lost is bound, and cannot be read', () => {
    const pins = foldersOf(lab.folder.path).snapshots
    mustRun(['sh', '-c', `rm -f ${pins}/*`])
    const reading = readDatapath({ folder: lab.folder.path })
    expect(reading.direction(lab.held.slot, 'egress')).toMatchObject({ bound: {}, counts: [] })
    reading.close()
  })
})
