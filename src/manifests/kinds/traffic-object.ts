/** Traffic policies and what they are bound to, held to their schemas; an object that is refused is kept without its spec. */
import { describeValue, isRecord } from '#manifests/text/raw-object'
import type { ApiKind } from '#model/api-schema'
import { edgeAttachmentKind, edgeServiceKind, vpcAttachmentKind } from '#model/attachment-schema'
import type { Meta } from '#model/meta'
import type {
  EdgeAttachment,
  EdgeService,
  Problem,
  TrafficPolicy,
  TrafficPolicyBinding,
  VpcAttachment,
} from '#model/traffic-policy'
import { trafficGroup, trafficGroupAlias, trafficVersion } from '#model/traffic-policy'
import { trafficPolicyBindingKind } from '#model/traffic-policy-binding-schema'
import { trafficPolicyKind } from '#model/traffic-policy-schema'
import { type Fields, report } from './fields'
import { askRules, type Hold, readValue } from './read-value'

export const parseTrafficPolicy = parserOf<TrafficPolicy>(trafficPolicyKind)
export const parseTrafficPolicyBinding = parserOf<TrafficPolicyBinding>(trafficPolicyBindingKind)
export const parseVpcAttachment = parserOf<VpcAttachment>(vpcAttachmentKind)
export const parseEdgeService = parserOf<EdgeService>(edgeServiceKind)
export const parseEdgeAttachment = parserOf<EdgeAttachment>(edgeAttachmentKind)

type AnyObject = {
  readonly meta: Meta
  readonly generation: number
  readonly spec?: unknown
  readonly status?: unknown
  readonly unreadStatus?: readonly Problem[]
  readonly problems: readonly Problem[]
}

/** What the schema took is of the type that was made from the same schema. */
function parserOf<T extends AnyObject>(kind: ApiKind): (root: Fields, meta: Meta) => T {
  return (root, meta) => parseObject(kind, root, meta) as T
}

function parseObject(kind: ApiKind, root: Fields, meta: Meta): AnyObject {
  const hold: Hold = { told: [], isStrict: true }
  checkRoot(root, hold)
  const { spec } = root.values
  const read = readValue(kind.spec, spec ?? {}, 'spec', hold)
  if (hold.told.length === 0) askRules(kind.rules, { metadata: { name: meta.name }, spec: read }, '', hold)
  const problems = hold.told.map((problem) => nameRule(problem, spec))
  for (const problem of problems) tell(root, problem)
  const { status, unread } = parseStatus(kind, root)
  const generation = generationOf(root)
  return {
    meta: generation === undefined ? { ...meta, assumed: [...meta.assumed, 'metadata.generation'] } : meta,
    generation: generation ?? 1,
    ...(problems.length === 0 && { spec: read }),
    ...(status !== undefined && { status }),
    ...(unread.length > 0 && { unreadStatus: unread }),
    problems,
  }
}

/** The largest generation that a snapshot can name. */
const mostGeneration = 2 ** 32 - 1

function checkRoot(root: Fields, { told }: Hold): void {
  const { apiVersion, metadata } = root.values
  const versions = [trafficGroup, trafficGroupAlias].map((group) => `${group}/${trafficVersion}`)
  if (typeof apiVersion === 'string' && apiVersion !== '' && !versions.includes(apiVersion)) {
    const message = `there is no ${root.reading.kind} in ${describeValue(apiVersion)}`
    told.push({ path: 'apiVersion', message, hint: `write apiVersion: ${versions[0]}` })
  }
  for (const name of Object.keys(root.values)) {
    if (['apiVersion', 'kind', 'metadata', 'spec', 'status'].includes(name)) continue
    told.push({ path: name, message: 'there is no such field', hint: 'known here: metadata, spec, status' })
  }
  const { uid, generation } = (metadata ?? {}) as { readonly uid?: unknown; readonly generation?: unknown }
  if (typeof uid === 'string' && !/^[!-~]{0,64}$/.test(uid)) {
    told.push({ path: 'metadata.uid', message: 'no API server gives such a UID', hint: 'leave it out' })
  }
  if (typeof uid === 'string' && uid.startsWith('builtin:')) {
    told.push({
      path: 'metadata.uid',
      message: 'UIDs of "builtin:" are those of built-in policies',
      hint: 'leave it out',
    })
  }
  if (generation !== undefined && generation !== null && generationOf(root) === undefined) {
    const message = `${describeValue(generation)} is no generation`
    told.push({ path: 'metadata.generation', message, hint: 'leave it out, or write a whole number' })
  }
}

function generationOf(root: Fields): number | undefined {
  const { generation } = (root.values.metadata ?? {}) as { readonly generation?: unknown }
  const isGiven = typeof generation === 'number' && Number.isInteger(generation)
  return isGiven && generation >= 0 && generation <= mostGeneration ? generation : undefined
}

type StatusReading = { readonly status?: unknown; readonly unread: readonly Problem[] }

/** A status is written by programs: one that cannot be read is told and left out, and the spec counts all the same. */
function parseStatus(kind: ApiKind, root: Fields): StatusReading {
  if (!isGiven(root.values.status)) return { unread: [] }
  const hold: Hold = { told: [], isStrict: false }
  const status = readValue(kind.status, root.values.status, 'status', hold)
  for (const problem of hold.told) tell(root, problem)
  return hold.told.length === 0 ? { status, unread: [] } : { unread: hold.told }
}

/** An empty status is as good as none. */
function isGiven(status: unknown): boolean {
  return status !== undefined && status !== null && !(isRecord(status) && Object.keys(status).length === 0)
}

/** Whoever reads the sentence alone, as in a status, learns of which rule it is. */
function nameRule(problem: Problem, spec: unknown): Problem {
  const index = /^spec\.rules\[(\d+)\]/.exec(problem.path)?.[1]
  const rules = (spec as { readonly rules?: unknown } | undefined)?.rules
  if (index === undefined || !Array.isArray(rules)) return problem
  const name: unknown = (rules[Number(index)] as { readonly name?: unknown } | null)?.name
  const rule = typeof name === 'string' ? describeValue(name) : `#${index}`
  return { ...problem, message: `rule ${rule}: ${problem.message}` }
}

function tell(root: Fields, { path, message, hint }: Problem): void {
  report(root, '', { code: 'traffic-policy.refused', message, hint, path })
}
