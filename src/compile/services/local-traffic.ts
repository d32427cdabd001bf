/** The test that tells traffic of local pods, as both back-ends write it in their own words. */
import type { Family } from '#base/ip'
import { parsePrefix, printPrefix } from '#base/prefix'
import type { ProxySettings } from './proxy-settings'

/** `source`: the packet comes from the CIDR. `interface`: it came in there; a prefix stands for all names it begins. */
export type LocalTraffic =
  | { readonly kind: 'source'; readonly cidr: string }
  | { readonly kind: 'interface'; readonly name: string; readonly isPrefix: boolean }

/** Undefined when kube-proxy has nothing to go by: it then leaves out the rules that need the test. */
export function localTraffic(
  { detectLocal }: ProxySettings,
  { family, podCIDRs }: { readonly family: Family; readonly podCIDRs: readonly string[] },
): LocalTraffic | undefined {
  switch (detectLocal.kind) {
    case 'ClusterCIDR':
      return firstOfFamily(detectLocal.cidrs, family)
    case 'NodeCIDR':
      return firstOfFamily(podCIDRs, family)
    case 'BridgeInterface':
      return ofInterface(detectLocal.name, false)
    case 'InterfaceNamePrefix':
      return ofInterface(detectLocal.prefix, true)
    default:
      return detectLocal satisfies never
  }
}

function ofInterface(name: string, isPrefix: boolean): LocalTraffic | undefined {
  return name === '' ? undefined : { kind: 'interface', name, isPrefix }
}

/** cmd/kube-proxy/app/server_linux.go (1.34): of several ranges of a family only the first counts. */
function firstOfFamily(cidrs: readonly string[], family: Family): LocalTraffic | undefined {
  for (const text of cidrs) {
    const prefix = parsePrefix(text)?.prefix
    if (prefix?.ip.family === family) return { kind: 'source', cidr: printPrefix(prefix) }
  }
  return undefined
}
