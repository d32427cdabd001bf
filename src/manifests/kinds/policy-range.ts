/** Ranges of addresses in policies, read as the API server reads them: sloppily, with a warning. */
import { explainBadIp } from '#base/ip'
import { type Prefix, parsePrefix, printPrefix } from '#base/prefix'
import { describeValue } from '#manifests/text/raw-object'
import { type Fields, report } from './fields'
import { refuse } from './policy-refusal'

/**
 * Mirrors IsValidCIDRForLegacyField and GetWarningsForCIDR (apimachinery util/validation/ip.go, 1.34): bits beyond the
 * length and leading zeros are accepted with a warning, unless the gate StrictIPCIDRValidation is on.
 */
export function policyRangeAt(fields: Fields, key: string, value: unknown): Prefix | undefined {
  const text = typeof value === 'string' ? value : ''
  const plain = text.replace(/(^|\.)0+(?=\d)/g, '$1')
  const parsed = parsePrefix(plain)
  if (parsed === undefined) {
    refuse(fields, key, { problem: explainBadRange(value), hint: 'write it as ADDRESS/LENGTH' })
    return undefined
  }
  const range = printPrefix(parsed.prefix)
  if (plain !== text || parsed.hasHostBits) {
    const what = parsed.hasHostBits ? 'bits set beyond its length' : 'parts with leading zeros'
    const message = `${describeValue(value)} has ${what}: the API server accepts it with a warning, or refuses it where StrictIPCIDRValidation is on; it is read as ${range}`
    report(fields, key, { code: 'policy.sloppy-range', message, hint: `write ${range}` })
  }
  return parsed.prefix
}

/** An ipBlock may hold IPv4 written as IPv6 too, which Go's net.IPNet takes for the IPv4 range; CRDs refuse that form. */
export function blockRangeAt(fields: Fields, key: string, value: unknown): Prefix | undefined {
  const [, address, length] = /^::ffff:([0-9.]+)\/(\d+)$/i.exec(typeof value === 'string' ? value : '') ?? []
  const parsed = parsePrefix(`${address}/${Number(length) - 96}`)
  if (parsed === undefined) return policyRangeAt(fields, key, value)
  const range = printPrefix(parsed.prefix)
  const message = `${describeValue(value)} is an IPv4 range written as IPv6: the API server accepts it with a warning, or refuses it where StrictIPCIDRValidation is on; it is read as ${range}`
  report(fields, key, { code: 'policy.sloppy-range', message, hint: `write ${range}` })
  return parsed.prefix
}

function explainBadRange(value: unknown): string {
  if (typeof value !== 'string' || value === '')
    return `${describeValue(value)} stands where a range of addresses is wanted`
  const slash = value.indexOf('/')
  if (slash < 0) return `${describeValue(value)} is no range of addresses, as it has no length`
  const isAddress = parsePrefix(`${value.slice(0, slash)}/0`) !== undefined
  if (isAddress) return `the length of ${describeValue(value)} is no number, or too large`
  return `${describeValue(value)} is no range of addresses, as ${explainBadIp(value.slice(0, slash).slice(0, 80)).split('; ')[0]}`
}
