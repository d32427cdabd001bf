/** Which cluster is meant: the kubeconfigs found as kubectl finds them, merged, and the context chosen in them. */
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { CORE_SCHEMA, loadAll, mergeTag } from 'js-yaml'
import { Failure } from '#base/failure'
import { listOf, plainText } from '#base/text'
import { isRecord, type RawRecord } from '#manifests/text/raw-object'
import { readText } from './read-text'
import { codeOf } from './system-error'

export type ClusterOptions = { readonly kubeconfig?: string; readonly context?: string }

export type Environment = Readonly<Record<string, string | undefined>>

/** An entry of a kubeconfig, and the folder that its relative paths start from. */
export type ConfigEntry = { readonly name: string; readonly fields: RawRecord; readonly folder: string }

export type ChosenCluster = {
  /** What findings and sentences call it. */
  readonly context: string
  /** That of the context, else `default`. */
  readonly namespace: string
  readonly cluster: ConfigEntry
  readonly user: ConfigEntry
  /** The files it was found in, as a sentence names them. */
  readonly place: string
}

type Merged = {
  readonly place: string
  readonly currentContext: string
  readonly sections: Readonly<Record<Section, ReadonlyMap<string, ConfigEntry>>>
}

type Section = 'clusters' | 'users' | 'contexts'
const sections = { clusters: 'cluster', users: 'user', contexts: 'context' } as const

const serviceAccount = '/var/run/secrets/kubernetes.io/serviceaccount'

/**
 * Undefined when there is no kubeconfig, and this is no pod with a service account. client-go,
 * tools/clientcmd/loader.go: --kubeconfig is read alone; of the files in KUBECONFIG those that are not there are passed
 * over, and the first that sets a value wins; else ~/.kube/config; else the pod's own account.
 */
export async function chooseCluster(
  options: ClusterOptions,
  environment: Environment,
  accountFolder = serviceAccount,
): Promise<ChosenCluster | undefined> {
  refuseEmpty(options)
  const files = filesOf(options, environment)
  const merged = mergeFiles(await Promise.all(files.map(readConfig)), listOf(files))
  const isEmpty = Object.values(merged.sections).every((entries) => entries.size === 0)
  if (!isEmpty) return chooseContext(merged, options.context)
  if (options.kubeconfig !== undefined) {
    throw new Failure(
      'cluster.bad-config',
      `${merged.place} holds no cluster and no context; give a kubeconfig, as kubectl config view --raw prints it`,
    )
  }
  if (options.context !== undefined) {
    throw new Failure(
      'usage.not-found',
      `no context is named "${options.context}": there is no kubeconfig in KUBECONFIG or ~/.kube/config; name one with --kubeconfig`,
    )
  }
  return ownCluster(environment, accountFolder)
}

/** A variable that is not set, as a rule: the cluster that would be read is not the one that is meant. */
function refuseEmpty({ kubeconfig, context }: ClusterOptions): void {
  if (kubeconfig !== '' && context !== '') return
  const flag = kubeconfig === '' ? '--kubeconfig' : '--context'
  throw new Failure('usage.bad-argument', `${flag} is given and empty; name one, or leave ${flag} out`)
}

function filesOf({ kubeconfig }: ClusterOptions, { KUBECONFIG = '', HOME = '' }: Environment): readonly string[] {
  if (kubeconfig !== undefined) return [kubeconfig]
  const listed = KUBECONFIG.split(delimiter).filter((path) => path !== '')
  if (listed.length > 0) return listed.filter((path) => existsSync(path))
  const usual = join(HOME, '.kube', 'config')
  return HOME !== '' && existsSync(usual) ? [usual] : []
}

type ConfigFile = { readonly path: string; readonly fields: RawRecord }

async function readConfig(path: string): Promise<ConfigFile> {
  const text = await readText(path)
  const fields = parseConfig(text, path)
  if (fields === undefined || fields === null) return { path, fields: {} }
  if (!isRecord(fields)) {
    throw badConfig(path, `it holds ${describeKind(fields)} where a kubeconfig is a map`)
  }
  if (fields.kind !== undefined && fields.kind !== 'Config') {
    throw badConfig(path, `it is a ${plainText(String(fields.kind))}, not a kubeconfig (kind: Config)`)
  }
  return { path, fields }
}

const kubectlSchema = CORE_SCHEMA.withTags(mergeTag)

/** As kubectl reads YAML (sigs.k8s.io/yaml): of several documents the first, of a key that stands twice the later. */
export function parseAsKubectl(text: string): unknown {
  return loadAll(text, null, { json: true, schema: kubectlSchema })[0]
}

/** The parser's own message quotes lines, which may hold a token. */
function parseConfig(text: string, path: string): unknown {
  try {
    return parseAsKubectl(text)
  } catch (error) {
    const line = lineOf(error)
    throw badConfig(path, `it is no YAML${line === undefined ? '' : `: line ${line} cannot be read`}`)
  }
}

function lineOf(error: unknown): number | undefined {
  const mark = isRecord(error) ? error.mark : undefined
  return isRecord(mark) && typeof mark.line === 'number' ? mark.line + 1 : undefined
}

function describeKind(value: unknown): string {
  if (isRecord(value)) return 'a map'
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`
}

function badConfig(path: string, fact: string): Failure {
  return new Failure('cluster.bad-config', `${path} is no kubeconfig: ${fact}; compare kubectl config view --raw`)
}

function mergeFiles(files: readonly ConfigFile[], place: string): Merged {
  const draft = { clusters: new Map(), users: new Map(), contexts: new Map() } as Record<
    Section,
    Map<string, ConfigEntry>
  >
  for (const file of files) {
    for (const section of Object.keys(sections) as Section[]) {
      for (const entry of entriesOf(file, section)) {
        if (!draft[section].has(entry.name)) draft[section].set(entry.name, entry)
      }
    }
  }
  const current = files
    .map(({ fields }) => fields['current-context'])
    .find((one) => typeof one === 'string' && one !== '')
  return { place, currentContext: String(current ?? ''), sections: draft }
}

function entriesOf({ path, fields }: ConfigFile, section: Section): readonly ConfigEntry[] {
  const list = fields[section]
  if (list === undefined || list === null) return []
  if (!Array.isArray(list)) throw badConfig(path, `${section} is ${describeKind(list)} where a list is wanted`)
  const names = new Set<string>()
  return list.map((entry: unknown, index): ConfigEntry => {
    const place = `${section}[${index}]`
    const fields = isRecord(entry) ? entry : {}
    const name = fields.name ?? ''
    if (name === '') throw badConfig(path, `${place} has no name`)
    if (typeof name !== 'string') throw badConfig(path, `the name of ${place} is ${describeKind(name)} without quotes`)
    // client-go, tools/clientcmd/api/v1/conversion.go.
    if (names.has(name)) throw badConfig(path, `${section} has two of the name "${plainText(name)}"`)
    names.add(name)
    const own = fields[sections[section]] ?? {}
    if (!isRecord(own)) throw badConfig(path, `${place}.${sections[section]} is no map`)
    return { name, fields: own, folder: dirname(path) }
  })
}

function chooseContext(merged: Merged, asked: string | undefined): ChosenCluster {
  const { clusters, users, contexts } = merged.sections
  const name = asked ?? merged.currentContext
  const known = contexts.size === 0 ? 'it has none' : `there are ${listOf([...contexts.keys()].map(plainText).sort())}`
  if (name === '') {
    throw new Failure(
      'usage.bad-argument',
      `${merged.place} names no current context: ${known}; name one with --context`,
    )
  }
  const context = contexts.get(name)
  if (context === undefined) {
    const wanted = asked === undefined ? `the current context of ${merged.place} is` : 'no context is named'
    const rest = asked === undefined ? `"${plainText(name)}", which it does not have` : `"${name}" in ${merged.place}`
    throw new Failure('usage.not-found', `${wanted} ${rest}: ${known}; name one of them with --context`)
  }
  const cluster = part(merged, context, { key: 'cluster', among: clusters })
  // A context without a user asks as nobody, as kubectl does.
  const user = textAt(context.fields, 'user') === '' ? undefined : part(merged, context, { key: 'user', among: users })
  return {
    context: plainText(name),
    namespace: textAt(context.fields, 'namespace') || 'default',
    cluster,
    user: user ?? { name: '', fields: {}, folder: '.' },
    place: merged.place,
  }
}

type Part = { readonly key: 'cluster' | 'user'; readonly among: ReadonlyMap<string, ConfigEntry> }

function part({ place }: Merged, context: ConfigEntry, { key, among }: Part): ConfigEntry {
  const name = textAt(context.fields, key)
  const found = among.get(name)
  if (found !== undefined) return found
  const fact = name === '' ? `names no ${key}` : `names ${key} "${plainText(name)}", which ${place} does not have`
  throw new Failure(
    'cluster.bad-config',
    `context "${plainText(context.name)}" ${fact}; mend it with kubectl config set-context, or choose another with --context`,
  )
}

/** A text of an entry; empty when there is none. */
export function textAt(fields: RawRecord, key: string): string {
  const value = fields[key]
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value
  // The value itself may be a secret.
  const fact = `${key} of the kubeconfig is ${describeKind(value)}, where text is wanted`
  throw new Failure('cluster.bad-config', `${fact}; put it in quotes`)
}

/** Whether an entry says so; absent is no. */
export function flagAt(fields: RawRecord, key: string): boolean {
  const value = fields[key] ?? false
  if (typeof value === 'boolean') return value
  const fact = `${key} of the kubeconfig is ${describeKind(value)}, where true or false is wanted`
  throw new Failure('cluster.bad-config', `${fact}; write it without quotes`)
}

/** client-go, rest/config.go InClusterConfig; the namespace as in tools/clientcmd/client_config.go. */
function ownCluster(environment: Environment, folder: string): ChosenCluster | undefined {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '' } = environment
  const tokenFile = join(folder, 'token')
  if (host === '' || port === '' || !existsSync(tokenFile)) return undefined
  const address = host.includes(':') ? `[${host}]` : host
  const authority = join(folder, 'ca.crt')
  return {
    context: 'in-cluster',
    namespace: environment.POD_NAMESPACE || readNamespace(join(folder, 'namespace')),
    cluster: {
      name: 'in-cluster',
      folder,
      fields: {
        server: `https://${address}:${port}`,
        ...(existsSync(authority) && { 'certificate-authority': authority }),
      },
    },
    user: { name: 'service account', folder, fields: { tokenFile } },
    place: folder,
  }
}

function readNamespace(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim() || 'default'
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 'default'
    throw new Failure('input.unreadable', `${path} cannot be read (${codeOf(error)}); check its permissions`, error)
  }
}
