/** Endpoints objects of v1, which people still write by hand for Services without a selector. */
import type { Endpoints, EndpointsAddress } from '#model/endpoint-slice'
import type { Meta } from '#model/meta'
import { addressAt } from './addresses'
import { parseEndpointPorts, parseTargetRef } from './endpoint-slice'
import { type Fields, has, mapsAt, plainNameAt, report } from './fields'
import type { Writable } from './writable'

export function parseEndpoints(root: Fields, meta: Meta): Endpoints {
  const subsets = mapsAt(root, 'subsets').map((subset) => ({
    addresses: parseAddresses(subset, 'addresses'),
    notReadyAddresses: parseAddresses(subset, 'notReadyAddresses'),
    ports: parseEndpointPorts(subset),
  }))
  return { meta, subsets }
}

function parseAddresses(subset: Fields, key: string): readonly EndpointsAddress[] {
  return mapsAt(subset, key).flatMap((entry) => {
    const ip = addressAt(entry, 'ip')
    if (ip === undefined) {
      if (!has(entry, 'ip')) report(entry, 'ip', { message: 'the field is missing; this address is left out' })
      return []
    }
    const address: Writable<EndpointsAddress> = { ip }
    const hostname = plainNameAt(entry, 'hostname')
    const nodeName = plainNameAt(entry, 'nodeName')
    const targetRef = parseTargetRef(entry)
    if (hostname !== undefined) address.hostname = hostname
    if (nodeName !== undefined) address.nodeName = nodeName
    if (targetRef !== undefined) address.targetRef = targetRef
    return [address]
  })
}
