/** Targets of kube-proxy's rules that no EndpointSlice has. */
import type { Finding } from '#base/finding'
import { parseIp, printEndpoint, printIp } from '#base/ip'
import type { Ruleset } from '#compile/iptables/rule'
import { targetOf } from '#compile/iptables/saved-rule'
import type { Expression } from '#compile/nftables/expression'
import type { Ruleset as NftRuleset } from '#compile/nftables/ruleset'
import type { EndpointSlice } from '#model/endpoint-slice'
import { verifyFinding } from './findings'

type Rules = { readonly rulesets: readonly Ruleset[]; readonly nft?: NftRuleset }

/** Slices without any endpoint say nothing about what there is. */
export function findStaleEndpoints(rules: Rules, slices: readonly EndpointSlice[]): readonly Finding[] {
  const known = new Set(slices.flatMap(placesOf))
  if (known.size === 0) return []
  const stale = new Map<string, string>()
  for (const { address, chain } of [...iptablesTargets(rules.rulesets), ...nftTargets(rules.nft)]) {
    if (!known.has(address) && !stale.has(address)) stale.set(address, chain)
  }
  return [...stale].map(([address, chain]) => {
    const message = `${chain} sends to ${address}, which no EndpointSlice has`
    return verifyFinding(
      'ruleset.stale-endpoint',
      message,
      'take dump and slices at one time; then see whether kube-proxy syncs',
    )
  })
}

function placesOf({ endpoints, ports }: EndpointSlice): readonly string[] {
  return endpoints.flatMap(({ addresses }) =>
    addresses.flatMap((address) =>
      ports.flatMap(({ port }) => (port === undefined ? [] : [printEndpoint(address, port)])),
    ),
  )
}

type Target = { readonly address: string; readonly chain: string }

function iptablesTargets(rulesets: readonly Ruleset[]): readonly Target[] {
  return rulesets.flatMap(({ tables }) =>
    [...(tables.get('nat')?.chains.values() ?? [])]
      .filter((chain) => chain.name.startsWith('KUBE-SEP-'))
      .flatMap((chain) =>
        chain.rules
          .filter((rule) => targetOf(rule) === 'DNAT')
          .flatMap((rule) => rule.action?.options.find(({ flag }) => flag === '--to-destination')?.values[0] ?? [])
          .map((address) => ({ address, chain: chain.name })),
      ),
  )
}

function nftTargets(nft: NftRuleset | undefined): readonly Target[] {
  return [...(nft?.tables.values() ?? [])]
    .filter((table) => table.name === 'kube-proxy')
    .flatMap((table) => [...table.chains.values()])
    .flatMap((chain) =>
      chain.rules
        .flatMap(({ statements }) => statements)
        .flatMap((statement) => {
          if (statement.kind !== 'dnat') return []
          const address = printTarget(statement.address, statement.port)
          return address === undefined ? [] : [{ address, chain: chain.name }]
        }),
    )
}

function printTarget(address: Expression | undefined, port: Expression | undefined): string | undefined {
  if (address?.kind !== 'value' || port?.kind !== 'value' || typeof port.value !== 'number') return undefined
  const ip = parseIp(String(address.value))
  return ip === undefined ? undefined : printEndpoint(printIp(ip), port.value)
}
