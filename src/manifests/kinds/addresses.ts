/** Reading IP addresses and ranges: canonical text, or a finding that says what is wrong and what to write. */
import { canonicalIp, explainBadIp } from '#base/ip'
import { parsePrefix, printPrefix } from '#base/prefix'
import { describeValue } from '#manifests/text/raw-object'
import { type Fields, itemsAt, report, wrongType } from './fields'

/** One address under a key; absent, null and empty are no address. */
export function addressAt(fields: Fields, key: string): string | undefined {
  const value = fields.values[key]
  if (value === undefined || value === null || value === '') return undefined
  const address = canonicalOf(value)
  if (address === undefined) reportBadAddress(fields, key, value)
  return address
}

export function addressesAt(fields: Fields, key: string): string[] {
  const addresses: string[] = []
  const items = itemsAt(fields, key)
  for (let index = 0; index < items.length; index++) {
    const address = canonicalOf(items[index])
    if (address !== undefined) addresses.push(address)
    else reportBadAddress(fields, `${key}[${index}]`, items[index])
  }
  return addresses
}

/** The addresses of a list whose entries hold one each: `podIPs: [{ip: …}]`. */
export function addressesIn(entries: readonly Fields[], key: string): string[] {
  const addresses: string[] = []
  for (const entry of entries) {
    const address = addressAt(entry, key)
    if (address !== undefined) addresses.push(address)
  }
  return addresses
}

/** Ranges under a key, trimmed as kube-proxy trims them, with bits beyond the length cleared. */
export function cidrsAt(fields: Fields, key: string): string[] {
  return itemsAt(fields, key).flatMap((item, index) => parseCidr(fields, `${key}[${index}]`, item) ?? [])
}

export function cidrAt(fields: Fields, key: string): string | undefined {
  const value = fields.values[key]
  return value === undefined || value === null || value === '' ? undefined : parseCidr(fields, key, value)
}

function canonicalOf(value: unknown): string | undefined {
  return typeof value === 'string' ? canonicalIp(value) : undefined
}

function reportBadAddress(fields: Fields, path: string, value: unknown): void {
  if (typeof value !== 'string') {
    report(fields, path, { message: wrongType(value, 'an IP address') })
    return
  }
  const [reason, hint] = explainBadIp(value.slice(0, 80)).split('; ')
  const message = `${reason}; the address is left out`
  report(fields, path, { code: 'manifest.bad-address', message, ...(hint !== undefined && { hint }) })
}

function parseCidr(fields: Fields, path: string, value: unknown): string | undefined {
  if (typeof value !== 'string') {
    report(fields, path, { message: wrongType(value, 'an IP range') })
    return undefined
  }
  const parse = parsePrefix(value.trim())
  if (parse === undefined) {
    report(fields, path, { code: 'manifest.bad-cidr', message: badCidr(value), hint: 'write it as ADDRESS/LENGTH' })
    return undefined
  }
  const range = printPrefix(parse.prefix)
  if (parse.hasHostBits) {
    report(fields, path, {
      code: 'manifest.host-bits',
      message: `${describeValue(value)} has bits set beyond its length; it is read as ${range}`,
      hint: `write ${range}`,
    })
  }
  return range
}

function badCidr(value: string): string {
  const slash = value.indexOf('/')
  const reason = slash < 0 ? 'it has no length' : explainBadIp(value.slice(0, slash).trim().slice(0, 80))
  const known = slash >= 0 && canonicalIp(value.slice(0, slash).trim()) !== undefined
  return `${describeValue(value)} is no IP range, as ${known ? 'its length is out of range' : reason}; it is left out`
}
