/** The source port that a translated connection gets: its own, or one that stands for the kernel's draw. */
import { answerOf, type Flight, packetProtocol, sourceText } from './flight'
import type { JourneyWorld } from './journey-world'
import { findTracked, type NodeState } from './node-state'

export type DrawInput = {
  readonly world: JourneyWorld
  readonly node: string
  readonly flight: Flight
  readonly state: NodeState
}

const tries = 128

/**
 * A port stays unless another connection holds it or the rule asks for a random one; then it is one of its class: below
 * 512, below 1024, or above (nf_nat_core.c nf_nat_l4proto_unique_tuple).
 */
export function drawPort(
  input: DrawInput,
  after: Flight,
  isRandom: boolean,
): { readonly port: number; readonly note: string } {
  if (!isRandom && isFree(input, after)) return { port: after.sourcePort, note: 'its port stays' }
  const [least, count] = after.sourcePort < 512 ? [1, 511] : after.sourcePort < 1024 ? [600, 424] : [1024, 64_512]
  const start = hashOf(`${input.world.setting.seed} ${input.node} ${packetProtocol(after)} ${sourceText(input.flight)}`)
  for (let attempt = 0; attempt < tries; attempt++) {
    const port = least + ((start + attempt) % count)
    if (isFree(input, { ...after, sourcePort: port })) {
      const why = isRandom ? 'a random port, here' : 'another connection holds its port, so that it gets'
      return { port, note: `${why} ${port}` }
    }
  }
  return { port: after.sourcePort, note: 'no port is free' }
}

function isFree({ state, node }: DrawInput, after: Flight): boolean {
  return findTracked(state, node, answerOf(after)) === undefined
}

/** FNV-1a over UTF-16 units. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0
  return hash
}
