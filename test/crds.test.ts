/** crds/ is what the schemas say, and its CEL rules mean what our own validator holds objects to. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { load } from 'js-yaml'
import { expect, test } from 'vitest'
import { crdFileName, printCrd } from '../src/manifests/print-crd'
import { trafficKinds } from '../src/model/traffic-policy'

const folder = join(dirname(fileURLToPath(import.meta.url)), '..', 'crds')

test.each(trafficKinds.map((kind) => [crdFileName(kind), kind] as const))(
  'crds/%s is made of the schema',
  (name, kind) => {
    const text = printCrd(kind)
    if (process.env.PORTOLAN_UPDATE_CASES === '1') writeFileSync(join(folder, name), text)
    expect(readFileSync(join(folder, name), 'utf8')).toBe(text)
  },
)

test('crds/ holds nothing else', () => {
  expect(readdirSync(folder).sort()).toEqual(trafficKinds.map(crdFileName).sort())
})

type Node = { readonly [key: string]: unknown }

function nodesOf(node: Node): readonly Node[] {
  const { properties, items } = node as { readonly properties?: Record<string, Node>; readonly items?: Node }
  return [node, ...Object.values(properties ?? {}).flatMap(nodesOf), ...(items === undefined ? [] : nodesOf(items))]
}

function schemaOf(name: string): Node {
  const crd = load(readFileSync(join(folder, name), 'utf8')) as {
    spec: { versions: [{ schema: { openAPIV3Schema: Node } }] }
  }
  return crd.spec.versions[0].schema.openAPIV3Schema
}

test.each(trafficKinds.map(crdFileName))(
  'crds/%s is structural: every node has a type, every list and text its bounds',
  (name) => {
    for (const node of nodesOf(schemaOf(name))) {
      const at = JSON.stringify(node).slice(0, 200)
      expect(node.type, at).toBeTypeOf('string')
      if (node.type === 'array') {
        expect(node.items, at).toBeDefined()
        expect(node.maxItems, at).toBeTypeOf('number')
        expect(['atomic', 'set', 'map'], at).toContain(node['x-kubernetes-list-type'])
      }
      // What a list of type map goes by must be there.
      const keys = (node['x-kubernetes-list-map-keys'] ?? []) as readonly string[]
      const { required = [] } = (node.items ?? {}) as { readonly required?: readonly string[] }
      for (const key of keys) expect(required, at).toContain(key)
    }
  },
)

test('the nodes of a binding’s status merge by node, so that each applies its own entry', () => {
  const status = (schemaOf('portolan.dev_trafficpolicybindings.yaml').properties as Record<string, Node>).status
  const { nodes } = (status as { properties: Record<string, Node> }).properties
  expect(nodes).toMatchObject({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['node'] })
})

test('kubectl get shows Enforcing of bindings', () => {
  const text = readFileSync(join(folder, 'portolan.dev_trafficpolicybindings.yaml'), 'utf8')
  expect(text).toContain('jsonPath: .status.conditions[?(@.type=="Enforcing")].status')
})
