/** SRV records: one a port and name, each with a share of the weight, and the addresses of the names beside them. */
import type { Target } from './find-targets'
import type { AddressRecord, ServiceRecord } from './record'

type Setting = { readonly zone: string; readonly ttl: number }

/** The weight is a share of 100 by the number of targets before equal records are merged (plugin/backend_lookup.go). */
export function serviceRecords(
  name: string,
  targets: readonly Target[],
  { zone, ttl }: Setting,
): { readonly answers: readonly ServiceRecord[]; readonly additional: readonly AddressRecord[] } {
  const found = targets.flatMap((target) => (target.kind === 'address' ? [target] : []))
  const weight = Math.max(1, Math.floor(100 / Math.max(1, found.length)))
  const answers = new Map<string, ServiceRecord>()
  const additional = new Map<string, AddressRecord>()
  for (const { owner, port, address, family } of found) {
    if (port < 0) continue
    const target = zone === '.' ? `${owner}.` : `${owner}.${zone}`
    answers.set(`${owner} ${port}`, { type: 'SRV', name, ttl, priority: 0, weight, port, target })
    const type = family === 'ipv4' ? 'A' : 'AAAA'
    additional.set(`${owner} ${address}`, { type, name: target, ttl, address })
  }
  return { answers: [...answers.values()], additional: [...additional.values()] }
}
