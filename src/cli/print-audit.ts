/** An audit as text: the counts, what would be denied with its newest examples, and by policy, by peer and unknown. */
import { printRef } from '#base/finding'
import { countOf, listOf, plainText, printTable } from '#base/text'
import { printInstant } from '#flows/instant'
import type { AuditExample, AuditGroup, AuditReport, Counts } from '#verify/policy/audit'

export function printAudit(report: AuditReport): string {
  return [
    printCounts(report),
    section('Would be denied', report.groups.map(printGroup)),
    table('By policy', ['POLICY', 'FLOWS', 'SEEN'], policyRows(report)),
    table('With whom', ['PEER', 'FLOWS', 'SEEN'], offenderRows(report)),
    section('Unknown', report.unknowns.map(printUnknown)),
  ].join('')
}

function printCounts({ all, dropped, allowed, denied, unknown }: AuditReport): string {
  const past = dropped.flows === 0 ? '' : `; ${dropped.flows} dropped when seen, and not judged`
  const [flows, seen] = [countOf(all.flows, 'flow'), countOf(all.hits, 'time')]
  return `${flows}, seen ${seen}: ${allowed.flows} allowed, ${denied.flows} denied, ${unknown.flows} unknown${past}\n`
}

function section(title: string, parts: readonly string[]): string {
  return parts.length === 0 ? '' : `\n${title}\n${parts.join('')}`
}

function table(title: string, header: readonly string[], rows: readonly (readonly string[])[]): string {
  return rows.length === 0 ? '' : `\n${title}\n${printTable(header, rows)}`
}

function printGroup(group: AuditGroup): string {
  const { subject, direction, port, protocol, isByRule, policies, examples } = group
  const by = listOf(policies.map(printRef)) || 'no policy that selects it'
  const how = isByRule ? `a rule of ${by} denies it` : `no rule of ${by} allows it`
  const line = `${subject} ${direction} ${port}/${protocol}: ${countsText(group)}; ${how}`
  return `  ${plainText(line)}\n${printExamples(examples)}`
}

function countsText({ flows, hits }: Counts): string {
  return `${countOf(flows, 'flow')}, seen ${countOf(hits, 'time')}`
}

function printExamples(examples: readonly AuditExample[]): string {
  return examples.map((example) => `    ${plainText(exampleText(example))}\n`).join('')
}

function exampleText({ time, pod, peer, peerAddress, direction }: AuditExample): string {
  const there = peer === '' ? (peerAddress ?? 'nobody') : withAddress(peer, peerAddress)
  return `${printInstant(time)}  ${direction === 'EGRESS' ? `${pod} to ${there}` : `${there} to ${pod}`}`
}

function withAddress(peer: string, address: string | null): string {
  return address === null || peer.includes(address) ? peer : `${peer} at ${address}`
}

function policyRows({ policies }: AuditReport): readonly (readonly string[])[] {
  return policies.map(({ object, flows, hits }) => [printRef(object), String(flows), String(hits)])
}

function offenderRows({ offenders }: AuditReport): readonly (readonly string[])[] {
  return offenders.map(({ peer, flows, hits }) => [peer, String(flows), String(hits)])
}

function printUnknown(group: AuditReport['unknowns'][number]): string {
  return `  ${plainText(`${group.sentence}: ${countsText(group)}`)}\n${printExamples(group.examples)}`
}
