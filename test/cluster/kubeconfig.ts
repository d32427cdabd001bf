/** Kubeconfigs for tests, and command lines that read a cluster by them. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dump } from 'js-yaml'
import { runPortolan } from '../../src/cli/run-portolan'

export type ConfigParts = {
  readonly server: string
  readonly cluster?: Readonly<Record<string, unknown>>
  readonly user?: Readonly<Record<string, unknown>>
  readonly namespace?: string
  readonly context?: string
}

export function configOf({ server, cluster, user, namespace, context = 'test' }: ConfigParts): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server, ...cluster } }],
    users: [{ name: 'u', user: user ?? {} }],
    contexts: [{ name: context, context: { cluster: 'c', user: 'u', ...(namespace !== undefined && { namespace }) } }],
    'current-context': context,
  }
}

export function writeConfig(folder: string, parts: ConfigParts, name = 'config'): string {
  const path = join(folder, name)
  writeFileSync(path, dump(configOf(parts)))
  return path
}

export type Ran = { readonly code: number; readonly out: string; readonly err: string }

export async function run(argv: readonly string[]): Promise<Ran> {
  let out = ''
  let err = ''
  const code = await runPortolan(argv, {
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
    stdin: (async function* () {})(),
    isTerminal: false,
  })
  return { code, out, err }
}
