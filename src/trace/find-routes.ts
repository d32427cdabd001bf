/** Address ranges whose interface a ruleset gives away, such as Docker's `-s 172.17.0.0/16 ! -o docker0 -j MASQUERADE`. */
import type { Rule, Ruleset } from '#compile/iptables/rule'
import { parseMaskedAddress } from './masked-address'
import type { Route } from './world'

const found = new WeakMap<Ruleset, readonly Route[]>()

export function findRoutes(ruleset: Ruleset): readonly Route[] {
  const known = found.get(ruleset)
  if (known !== undefined) return known
  const routes: Route[] = []
  for (const [table, chain] of [
    ['nat', 'POSTROUTING'],
    ['filter', 'DOCKER'],
  ] as const) {
    for (const rule of ruleset.tables.get(table)?.chains.get(chain)?.rules ?? []) {
      const route = table === 'nat' ? masqueradedRoute(rule) : publishedRoute(rule)
      if (route !== undefined) routes.push(route)
    }
  }
  found.set(ruleset, routes)
  return routes
}

/** What is masqueraded unless it leaves through an interface lives behind that interface. */
function masqueradedRoute(rule: Rule): Route | undefined {
  if (rule.action?.target !== 'MASQUERADE') return undefined
  const source = rule.clauses.find((clause) => clause.kind === 'source')
  const out = rule.clauses.find((clause) => clause.kind === 'out-interface')
  if (source?.kind !== 'source' || source.not || out?.kind !== 'out-interface' || !out.not) return undefined
  return routeOf(rule, source.value, out.value)
}

/** Docker accepts for one container what comes from elsewhere and leaves through its bridge. */
function publishedRoute(rule: Rule): Route | undefined {
  const destination = rule.clauses.find((clause) => clause.kind === 'destination')
  const out = rule.clauses.find((clause) => clause.kind === 'out-interface')
  if (rule.action?.target !== 'ACCEPT' || destination?.kind !== 'destination' || destination.not) return undefined
  if (out?.kind !== 'out-interface' || out.not) return undefined
  return routeOf(rule, destination.value, out.value)
}

function routeOf(rule: Rule, address: string, name: string): Route | undefined {
  const prefix = parseMaskedAddress(address)?.prefix
  if (prefix === undefined || prefix.length === 0 || name.endsWith('+')) return undefined
  return { prefix, interface: name, because: rule.text ?? '' }
}
