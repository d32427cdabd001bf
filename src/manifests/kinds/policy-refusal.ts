/** What the API server says of a policy: what it refuses, what it accepts with a warning, and which fields it does not know. */
import { describeValue } from '#manifests/text/raw-object'
import { type Fields, report } from './fields'

export type Refusal = { readonly problem: string; readonly hint?: string }

/** The object cannot be in a cluster, so it is left out of every answer. */
export function refuse(fields: Fields, key: string, { problem, hint }: Refusal): void {
  const message = `the API server refuses this object: ${problem}; it is left out`
  report(fields, key, { code: 'policy.refused', message, ...(hint !== undefined && { hint }) })
}

/**
 * The value, unless something about the object was an error: also a wrong type, which the server cannot even decode.
 * `read` reports all that is wrong, not the first thing alone.
 */
export function unlessRefused<T>(root: Fields, read: () => T): T | undefined {
  const { findings } = root.reading
  const start = findings.length
  const value = read()
  const errors = findings.slice(start).filter(({ severity }) => severity === 'error')
  if (errors.length === 0) return value
  if (errors.every(({ code }) => code !== 'policy.refused' && code !== 'policy.not-enforced')) {
    const message = 'the API server refuses this object, as told of its fields; it is left out'
    report(root, '', { code: 'policy.refused', message, hint: 'mend it, or delete it' })
  }
  return undefined
}

/** kubectl refuses fields that nobody knows; the server drops them for clients that do not ask it to be strict. */
export function checkKnown(fields: Fields, known: readonly string[]): void {
  for (const key of Object.keys(fields.values)) {
    if (known.includes(key)) continue
    const meant = known.find((name) => name.toLowerCase() === key.toLowerCase())
    const hint = meant === undefined ? `known here: ${known.join(', ')}` : `write ${meant}`
    const message = `there is no field ${describeValue(key)} here: kubectl refuses the object, and for other clients the API server drops the field; it is left out`
    report(fields, key, { code: 'policy.unknown-field', message, hint })
  }
}

/** `versions` are those that hold the kind in this shape; a version that a List leaves out is taken for the first. */
export function checkVersion(root: Fields, versions: readonly string[]): void {
  const { apiVersion } = root.values
  if (apiVersion === undefined || apiVersion === null || apiVersion === '') return
  if (versions.some((version) => version === apiVersion)) return
  const problem = `there is no ${root.reading.kind} in ${describeValue(apiVersion)}`
  refuse(root, 'apiVersion', { problem, hint: `write apiVersion: ${versions[0]}` })
}
