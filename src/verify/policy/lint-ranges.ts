/** Ranges of addresses in one rule that hold each other, or let in what another makes an exception of. */
import type { Finding } from '#base/finding'
import { containsPrefix, overlaps, type Prefix, parsePrefixOrIp, printPrefix } from '#base/prefix'
import { type CiliumElement, ciliumSections } from '#model/cilium-policy'
import type { Cluster } from '#model/cluster'
import { type Meta, refOf } from '#model/meta'
import { lintFinding } from './findings'

type Range = { readonly path: string; readonly cidr: Prefix; readonly except: readonly Prefix[] }

export function lintRanges({ networkPolicies, tierPolicies, ciliumPolicies }: Cluster): readonly Finding[] {
  const ofNetwork = [...networkPolicies.values()].flatMap(({ meta, ingress, egress }) =>
    [...ingress, ...egress].flatMap(({ peers }) =>
      lintRule(
        meta,
        peers.flatMap((peer) => (peer.kind === 'ipBlock' ? [peer] : [])),
      ),
    ),
  )
  const ofTiers = [...tierPolicies.values()].flatMap(({ meta, ingress, egress }) =>
    [...ingress, ...egress].flatMap(({ peers }) =>
      lintRule(
        meta,
        peers.flatMap((peer) =>
          peer.kind === 'networks' ? peer.cidrs.map((cidr) => ({ path: peer.path, cidr, except: [] })) : [],
        ),
      ),
    ),
  )
  const ofCilium = [...ciliumPolicies.values()].flatMap(({ meta, specs }) =>
    specs.flatMap(({ sections }) =>
      ciliumSections.flatMap((section) => (sections[section] ?? []).flatMap((one) => lintRule(meta, rangesOf(one)))),
    ),
  )
  return [...ofNetwork, ...ofTiers, ...ofCilium]
}

function rangesOf({ cidrs = [], cidrSets = [] }: CiliumElement): readonly Range[] {
  const plain = cidrs.flatMap(({ path, text }) => rangeOf(path, text, []))
  const sets = cidrSets.flatMap(({ path, cidr, except }) =>
    cidr === undefined
      ? []
      : rangeOf(
          path,
          cidr,
          except.map(({ text }) => text),
        ),
  )
  return [...plain, ...sets]
}

function rangeOf(path: string, text: string, except: readonly string[]): readonly Range[] {
  const cidr = parsePrefixOrIp(text)
  if (cidr === undefined) return []
  return [{ path, cidr, except: except.flatMap((hole) => parsePrefixOrIp(hole) ?? []) }]
}

/** Of two equal ranges the later one is told. */
function lintRule(meta: Meta, ranges: readonly Range[]): readonly Finding[] {
  const source = { object: refOf(meta), origin: meta.origin }
  return ranges.flatMap((inner, at) => {
    const outer = ranges.find(
      (other, place) => place !== at && holds(other, inner) && (place < at || !holds(inner, other)),
    )
    if (outer !== undefined) {
      const message = `${printPrefix(inner.cidr)} lies in ${printPrefix(outer.cidr)} of the same rule, and adds nothing`
      return [
        lintFinding('policy.overlapping-ranges', source, { message, path: inner.path, hint: 'delete one of them' }),
      ]
    }
    const spoilt = inner.except.flatMap((hole) => {
      const other = ranges.find((one, place) => place !== at && overlaps(one.cidr, hole) && !isOut(one, hole))
      return other === undefined ? [] : [{ hole, other }]
    })
    return spoilt.map(({ hole, other }) => {
      const message = `the exception ${printPrefix(hole)} has no effect where ${printPrefix(other.cidr)} of the same rule lets it in again`
      return lintFinding('policy.overlapping-ranges', source, {
        message,
        path: inner.path,
        hint: 'make the same exception in both ranges',
      })
    })
  })
}

function isOut({ except }: Range, hole: Prefix): boolean {
  return except.some((own) => containsPrefix(own, hole))
}

function holds(outer: Range, inner: Range): boolean {
  if (!containsPrefix(outer.cidr, inner.cidr)) return false
  return outer.except.every((hole) => !overlaps(hole, inner.cidr) || isOut(inner, hole))
}
