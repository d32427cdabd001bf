/** docs/cluster.md holds roles that allow what the commands list, and nothing else. PORTOLAN_UPDATE_CASES=1 rewrites them. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadAll } from 'js-yaml'
import { expect, test } from 'vitest'
import { type ClusterCommand, commandKinds } from '../../src/cli/read-inputs-kinds'
import { trafficGroup, trafficGroupAlias } from '../../src/model/traffic-policy'
import { type ClusterKind, clusterKinds, kindsNamed } from '../../src/sources/cluster-kinds'
import { readSamples, startApiServer } from './api-server'
import { run, writeConfig } from './kubeconfig'

const path = 'docs/cluster.md'
const page = readFileSync(path, 'utf8')
const roles = [...page.matchAll(/^\| (portolan-\w+) \| (.+) \|$/gm)].map(([, name = '', commands = '']) => ({
  name,
  commands: commands.split(', ') as readonly ClusterCommand[],
}))
const yamlBlock = /```yaml\n([\s\S]*)```\n/

function kindsOf(commands: readonly ClusterCommand[]): readonly ClusterKind[] {
  const names = commands.flatMap((command) => [...commandKinds[command].needed, ...commandKinds[command].helpful])
  const order = [...clusterKinds.keys()]
  return [...kindsNamed(names)].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind))
}

/** Groups that are gone since Kubernetes 1.16 are read where they are served, and need no rule. */
function rulesOf(kinds: readonly ClusterKind[]): readonly string[] {
  const groups = new Map<string, string[]>()
  for (const { groups: served, resource, hasOwnObjects, names } of kinds) {
    if (names !== undefined) continue
    const key = (hasOwnObjects ? served : served.slice(0, 1)).map((group) => group || '""').join(', ')
    groups.set(key, [...(groups.get(key) ?? []), resource])
  }
  const lists = [...groups].map(
    ([key, list]) => `  - {apiGroups: [${key}], resources: [${list.join(', ')}], verbs: [list]}`,
  )
  const named = kinds.flatMap(({ resource, names = [] }) =>
    names.length === 0
      ? []
      : [
          `  - {apiGroups: [""], resources: [${resource}], verbs: [list], resourceNames: [${names.map(({ name }) => name).join(', ')}]}`,
        ],
  )
  return [...lists, ...named]
}

function printRoles(): string {
  return roles
    .map(({ name, commands }) =>
      [
        'apiVersion: rbac.authorization.k8s.io/v1',
        'kind: ClusterRole',
        `metadata: {name: ${name}}`,
        'rules:',
        ...rulesOf(kindsOf(commands)),
        '',
      ].join('\n'),
    )
    .join('---\n')
}

test('the roles are those of the commands', () => {
  const wanted = `\`\`\`yaml\n${printRoles()}\`\`\`\n`
  if (process.env.PORTOLAN_UPDATE_CASES === '1') writeFileSync(path, page.replace(yamlBlock, wanted))
  expect(readFileSync(path, 'utf8').match(yamlBlock)?.[0]).toBe(wanted)
})

test('every command stands in one role, but for explain, which takes several', () => {
  const listed = roles.flatMap(({ commands }) => commands)
  expect([...listed, 'explain'].sort()).toEqual(Object.keys(commandKinds).sort())
  const several = roles.filter(({ name }) => name !== 'portolan-cilium').flatMap(({ commands }) => commands)
  expect(rulesOf(kindsOf([...several, 'explain']))).toEqual(rulesOf(kindsOf(several)))
})

test('resources are named as the CRDs name them', () => {
  const traffic = [...clusterKinds.values()].filter(({ groups }) => groups.includes(trafficGroup))
  expect(traffic.length).toBe(5)
  for (const { kind, resource, groups } of traffic) {
    expect(readFileSync(`crds/${trafficGroup}_${resource}.yaml`, 'utf8')).toContain(`kind: ${kind}\n`)
    expect(groups).toEqual([trafficGroup, trafficGroupAlias])
  }
})

type Rule = {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
}

/** `pods`, `deployments.apps`: what the role of the page does not allow. */
function forbiddenBy(name: string): readonly string[] {
  const documents = loadAll(page.match(yamlBlock)?.[1] ?? '') as {
    metadata: { name: string }
    rules: readonly Rule[]
  }[]
  const rules = documents.find(({ metadata }) => metadata.name === name)?.rules ?? []
  expect(rules.every(({ verbs }) => verbs.join() === 'list')).toBe(true)
  return [...clusterKinds.values()].flatMap(({ groups, resource, hasOwnObjects }) =>
    (hasOwnObjects ? groups : groups.slice(0, 1))
      .filter((group) => !rules.some((rule) => rule.apiGroups.includes(group) && rule.resources.includes(resource)))
      .map((group) => (group === '' ? resource : `${resource}.${group}`)),
  )
}

test.each([
  ['portolan-services', 'samples/shop', ['trace', '--all', '--node', 'node-a']],
  ['portolan-policies', 'samples/policies', ['policy', 'matrix']],
  ['portolan-cilium', 'samples/cilium', ['maps', '--node', 'node-a']],
  ['portolan-traffic', 'samples/traffic-policy', ['policy', 'show', 'tenant/web-0', '--node', 'x']],
])('%s is enough for its commands', async (role, samples, words) => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-role-'))
  const server = await startApiServer({ objects: await readSamples(samples), forbidden: forbiddenBy(role) })
  const ran = await run([...words, '--kubeconfig', writeConfig(folder, { server: server.url })])
  await server.close()
  rmSync(folder, { recursive: true })
  expect(ran.err).not.toMatch(/cluster\.unread-kind|portolan:/)
  expect(ran.out.length).toBeGreaterThan(30)
})
