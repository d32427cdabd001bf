/** A lookup as JSON and YAML show it. */
import type { Attempt } from './attempt'
import { type DnsRecord, printRecordData } from './record'
import type { ClusterResolution } from './resolve-in-cluster'

export type RecordJson = { readonly name: string; readonly type: string; readonly ttl: number; readonly data: string }

export type AttemptJson = {
  readonly name: string
  readonly type: string
  readonly rcode: string
  readonly answers: readonly string[]
  readonly because: string
  /** How often it was sent, when more than once. */
  readonly sends?: number
  readonly assumed?: true
  readonly forwarded?: true
  readonly unsure?: readonly string[]
}

export function resolutionJson(resolution: ClusterResolution, hints: readonly string[]): object {
  const { lookup, outcome, attempts, queries, answers, found, seconds, advice, unsure, hostsEntry, passes } = resolution
  return {
    name: lookup.name,
    ...(lookup.type !== undefined && { type: lookup.type }),
    libc: lookup.libc,
    outcome,
    ...(found !== undefined && { found }),
    attempts: attempts.map(attemptJson),
    queries,
    answers: answers.map(printRecordData),
    records: answers.map(recordJson),
    ...(seconds > 0 && { seconds }),
    ...(passes !== undefined && { passes }),
    ...(unsure.length > 0 && { unsure }),
    ...(hostsEntry !== undefined && { hosts: hostsEntry }),
    advice,
    ...(hints.length > 0 && { hints }),
    resolvConf: lookup.conf,
  }
}

function attemptJson(attempt: Attempt): AttemptJson {
  const { name, type, rcode, answers, because, sends, isAssumed, isForwarded, unsure } = attempt
  return {
    name,
    type,
    rcode,
    answers: answers.map(printRecordData),
    because,
    ...(sends > 1 && { sends }),
    ...(isAssumed === true && { assumed: true }),
    ...(isForwarded === true && { forwarded: true }),
    ...(unsure !== undefined && { unsure }),
  }
}

function recordJson(record: DnsRecord): RecordJson {
  return { name: record.name, type: record.type, ttl: record.ttl, data: printRecordData(record) }
}
