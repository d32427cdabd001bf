/** What an agent says of a binding: the body of its server-side apply, and the file that stands for it without an API server. */
import { readValue } from '#manifests/kinds/read-value'
import { isRecord } from '#manifests/text/raw-object'
import { type Problem, trafficGroup, trafficVersion } from '#model/traffic-policy'
import { type TrafficPolicyBindingStatus, trafficPolicyBindingKind } from '#model/traffic-policy-binding-schema'

/** One node's entry of `status.nodes`, written by that node alone. */
export type NodeEntry = NonNullable<TrafficPolicyBindingStatus['nodes']>[number]

export type StatusPatch = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly namespace: string
    readonly name: string
    /** The object that the entry speaks of; an API server refuses the patch of another one of its name. */
    readonly uid?: string
  }
  readonly status: { readonly nodes: readonly NodeEntry[] }
}

export type StatusObject = { readonly namespace: string; readonly name: string; readonly uid?: string }

export function fieldManagerOf(node: string): string {
  return `portolan-agent/${node}`
}

export function printStatusPatch({ namespace, name, uid }: StatusObject, entry: NodeEntry): StatusPatch {
  return {
    apiVersion: `${trafficGroup}/${trafficVersion}`,
    kind: trafficPolicyBindingKind.kind,
    metadata: { namespace, name, ...(uid !== undefined && { uid }) },
    status: { nodes: [entry] },
  }
}

/** Below the status folder: `portolan-agent-NODE/trafficpolicybindings/NAMESPACE/NAME.json`. */
export function statusFilePath(node: string, { namespace, name }: StatusObject): string {
  return `${statusFolderOf(node)}/${asFolder(namespace)}/${name}.json`
}

/** No API server takes a namespace of dots, but a file may hold one, and it must not lead out of the folder. */
function asFolder(namespace: string): string {
  return namespace.replace(/^\.+/, (dots) => '%2E'.repeat(dots.length))
}

/** The folder of one agent's files: its field manager, as a folder's name. */
export function statusFolderOf(node: string): string {
  return `${fieldManagerOf(node).replaceAll('/', '-')}/${trafficPolicyBindingKind.plural}`
}

export type StatusReading =
  | { readonly kind: 'patch'; readonly patch: StatusPatch }
  | { readonly kind: 'refused'; readonly problems: readonly Problem[] }

/** `value` is what JSON.parse made of a file. */
export function readStatusPatch(value: unknown): StatusReading {
  if (!isRecord(value)) return refuse([{ path: '', message: 'it is no object', hint: 'delete the file' }])
  const { metadata } = value
  const names = isRecord(metadata) ? metadata : {}
  const { namespace, name, uid } = names
  if (typeof namespace !== 'string' || typeof name !== 'string' || value.kind !== trafficPolicyBindingKind.kind) {
    const message = `it names no ${trafficPolicyBindingKind.kind}`
    return refuse([{ path: 'metadata', message, hint: 'delete the file' }])
  }
  const told: Problem[] = []
  const status = readValue(trafficPolicyBindingKind.status, value.status, 'status', { told, isStrict: true })
  if (told.length > 0) return refuse(told)
  const { nodes = [] } = status as TrafficPolicyBindingStatus
  const [entry, ...others] = nodes
  if (entry === undefined || others.length > 0) {
    const message = `it holds ${nodes.length} entries, where an agent writes one`
    return refuse([{ path: 'status.nodes', message, hint: 'delete the file' }])
  }
  const object = { namespace, name, ...(typeof uid === 'string' && { uid }) }
  return { kind: 'patch', patch: printStatusPatch(object, entry) }
}

function refuse(problems: readonly Problem[]): StatusReading {
  return { kind: 'refused', problems }
}
