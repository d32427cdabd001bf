/** Programs that another hand took off: whoever removes a clsact queueing discipline takes the filters of everybody along. */
import { Failure } from '#base/failure'
import type { Direction } from '#compile/traffic-policy/entry'
import { listPins } from './bpffs'
import {
  attachDirection,
  attachInterface,
  type HeldInterface,
  hookOf,
  type InterfaceTools,
  isHooked,
  liveLink,
  pinName,
} from './datapath-interfaces'
import { findPlace } from './find-place'
import { insideNamespace } from './network-namespace'
import { listInterfaces, type NetworkInterface } from './rtnetlink'

const directions: readonly Direction[] = ['ingress', 'egress']

/**
 * Puts them back on an interface that is still there: to give it up would open its other hook as well. With one program left
 * it is the same lifetime and goes on as it was. Without filters of `clsact` it may be another one of that name and index:
 * it is attached anew, and denies until something is published for it. False where there is nothing to put back, or no way.
 */
export function hookAgain(tools: InterfaceTools, held: HeldInterface): boolean {
  const { native } = tools.bpf
  const place = findPlace(tools.bpf, held, liveLink(tools, held.slot))
  if (place === undefined) return false
  try {
    return insideNamespace(native, place.namespacePath, () => {
      const link = listInterfaces(native).find(({ name }) => name === place.name)
      return link !== undefined && hookHere(tools, held, link)
    })
  } catch (error) {
    // It went meanwhile, or the hook is closed to us: then it is told as what is not attached.
    if (error instanceof Failure) return false
    throw error
  }
}

function hookHere(tools: InterfaceTools, held: HeldInterface, link: NetworkInterface): boolean {
  const missing = directions.filter((direction) => !isHooked(tools, held, hookOf(direction, held.side)))
  if (missing.length < directions.length) {
    for (const direction of missing) attachDirection(tools, held, { request: held, link, direction })
    return true
  }
  // A link is dead whatever became of its interface; a filter that nobody took off is there while the interface is.
  if (!hasFilterPins(tools, held) || link.name !== held.name) return false
  attachInterface(tools, { name: link.name, side: held.side, vpc: held.vpc })
  return true
}

function hasFilterPins({ folders }: InterfaceTools, { slot }: HeldInterface): boolean {
  const pinned = listPins(folders.programs)
  return directions.every((hook) => pinned.includes(pinName(slot, hook)))
}
