/** The cache plugin, as far as an answer shows it: it sets one TTL for all records of a reply (plugin/cache, 1.14). */
import type { Directive } from './corefile'
import { foldName, matchZone, zonesOfOrigin } from './domain-name'
import type { Plugin } from './plugin'
import type { DnsRecord, Reply } from './record'

type Limits = { readonly least: number; readonly most: number }

type CacheOptions = { readonly zones: readonly string[]; readonly success: Limits; readonly denial: Limits }

export function serveCache(directive: Directive, serverZones: readonly string[]): Plugin {
  const { zones, success, denial } = readCache(directive, serverZones)
  return {
    name: 'cache',
    serve: (question, next) => {
      const reply = next(question)
      if (matchZone(foldName(question.name), zones) === undefined || reply.forwarded !== undefined) return reply
      if (reply.rcode !== 'NOERROR' && reply.rcode !== 'NXDOMAIN') return reply
      const isDenial = reply.rcode === 'NXDOMAIN' || reply.answers.length === 0
      return withTtl(reply, clamp(leastTtl(reply), isDenial ? denial : success))
    },
  }
}

/** `cache [TTL] [ZONES…]` sets the most; `success` and `denial` take a capacity, the most and the least. */
function readCache({ args, block }: Directive, serverZones: readonly string[]): CacheOptions {
  const [first = '', ...rest] = args
  const hasTtl = /^\d+$/.test(first)
  const most = hasTtl ? Number(first) : undefined
  const own = (hasTtl ? rest : args).flatMap(zonesOfOrigin)
  const limitsOf = (name: string, usual: number): Limits => {
    const [, high, low] = block.find((option) => option.name === name)?.args ?? []
    return { most: secondsOf(high, most ?? usual), least: secondsOf(low, 5) }
  }
  return {
    zones: own.length === 0 ? serverZones : own,
    success: limitsOf('success', 3600),
    denial: limitsOf('denial', 1800),
  }
}

/** Text that is no number of seconds counts as left out. */
function secondsOf(text: string | undefined, usual: number): number {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : usual
}

function leastTtl({ answers, authority, additional }: Reply): number {
  const ttls = [...answers, ...authority, ...additional].map((record) =>
    record.type === 'SOA' ? Math.min(record.ttl, record.minimum) : record.ttl,
  )
  return ttls.length === 0 ? 5 : Math.min(3600, ...ttls)
}

function clamp(value: number, { least, most }: Limits): number {
  return Math.min(most, Math.max(least, value))
}

function withTtl(reply: Reply, ttl: number): Reply {
  const set = (records: readonly DnsRecord[]): readonly DnsRecord[] => records.map((record) => ({ ...record, ttl }))
  return { ...reply, answers: set(reply.answers), authority: set(reply.authority), additional: set(reply.additional) }
}
