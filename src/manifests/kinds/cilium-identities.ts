/** Reading CiliumCIDRGroup, CiliumIdentity, CiliumEndpoint and CiliumNode, as far as policies and identities need them. */
import type {
  CiliumCidrGroup,
  CiliumEndpointObject,
  CiliumIdentityObject,
  CiliumNodeObject,
} from '#model/cilium-policy'
import type { Meta } from '#model/meta'
import { addressAt, cidrsAt } from './addresses'
import { ciliumTextsAt, isRefusedSince, refuse, tellUnknown } from './cilium-fields'
import { checkVersion } from './cilium-policy'
import { type Fields, has, itemsAt, mapAt, mapsAt, nameAt, numberAt, report, textsAt } from './fields'
import type { Writable } from './writable'

/** The same in v2alpha1, which 1.16 and 1.17 serve, and v2, which 1.18 and later do. */
export function parseCidrGroup(root: Fields, meta: Meta): CiliumCidrGroup | undefined {
  const before = root.reading.findings.length
  checkVersion(root, ['cilium.io/v2', 'cilium.io/v2alpha1'])
  const spec = mapAt(root, 'spec')
  tellUnknown(spec, ['externalCIDRs'])
  if (!has(spec, 'externalCIDRs')) refuse(spec, 'externalCIDRs', 'externalCIDRs is wanted')
  const cidrs = ciliumTextsAt(spec, 'externalCIDRs') ?? []
  return isRefusedSince(root, before) ? undefined : { meta, cidrs }
}

/** Its name is its number; labels stand beside the metadata. */
export function parseCiliumIdentity(root: Fields, meta: Meta): CiliumIdentityObject | undefined {
  if (!/^[1-9]\d{0,9}$/.test(meta.name)) {
    report(mapAt(root, 'metadata'), 'name', {
      code: 'manifest.bad-value',
      message: `"${meta.name}" is no number of an identity; the object is left out`,
    })
    return undefined
  }
  const labels = mapAt(root, 'security-labels')
  const texts = Object.entries(labels.values).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return { meta, number: Number(meta.name), labels: Object.fromEntries(texts) }
}

export function parseCiliumEndpoint(root: Fields, meta: Meta): CiliumEndpointObject {
  const status = mapAt(root, 'status')
  const identity = mapAt(status, 'identity')
  const addressing = mapsAt(mapAt(status, 'networking'), 'addressing')
  const number = numberAt(identity, 'id', { from: 1, to: 0xffffffff, noun: 'a number of an identity' })
  const endpoint: Writable<CiliumEndpointObject> = {
    meta,
    labels: textsAt(identity, 'labels'),
    addresses: addressing.flatMap((entry) => ['ipv4', 'ipv6'].flatMap((key) => addressOf(entry, key))),
  }
  if (number !== undefined) endpoint.identity = number
  const id = numberAt(status, 'id', { from: 1, to: 65535, noun: 'a number of an endpoint' })
  if (id !== undefined) endpoint.id = id
  return endpoint
}

export function parseCiliumNode(root: Fields, meta: Meta): CiliumNodeObject {
  const spec = mapAt(root, 'spec')
  return {
    meta,
    addresses: mapsAt(spec, 'addresses').flatMap((entry) => {
      const address = addressAt(entry, 'ip')
      return address === undefined ? [] : [{ type: nameAt(entry, 'type') ?? 'InternalIP', address }]
    }),
    podCIDRs: itemsAt(mapAt(spec, 'ipam'), 'podCIDRs').length > 0 ? cidrsAt(mapAt(spec, 'ipam'), 'podCIDRs') : [],
    healthIps: ['ipv4', 'ipv6'].flatMap((key) => addressOf(mapAt(spec, 'health'), key)),
    ingressIps: ['ipv4', 'ipv6'].flatMap((key) => addressOf(mapAt(spec, 'ingress'), key)),
    encryptionKey: numberAt(mapAt(spec, 'encryption'), 'key', { from: 0, to: 255, noun: 'a number of a key' }) ?? 0,
  }
}

function addressOf(fields: Fields, key: string): readonly string[] {
  if (nameAt(fields, key) === undefined) return []
  const address = addressAt(fields, key)
  return address === undefined ? [] : [address]
}
