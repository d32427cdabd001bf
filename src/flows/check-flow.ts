/** What is wrong with one incoming flow, if anything; the rest of its batch does not depend on it. */
import { addressRange, canonicalAddress } from './address'
import type { BadRow, IncomingFlow } from './flow'
import { type Instant, isInstant, microsPerSecond, printInstant } from './instant'

export type FlowLimits = { readonly now: Instant; readonly futureSeconds: number; readonly pastSeconds: number }

/** Kubernetes names have at most 253 characters, and two names of this length still fit into an index of PostgreSQL. */
const mostBytes = 1024
const mostHits = 1_000_000_000

type Complaint = Omit<BadRow, 'index'>

export function checkFlow(flow: IncomingFlow, limits: FlowLimits): Complaint | undefined {
  return checkTexts(flow) ?? checkNumbers(flow) ?? checkTime(flow.time, limits) ?? checkOwnAddress(flow.pod.address)
}

function checkTexts(flow: IncomingFlow): Complaint | undefined {
  if (flow.pod.name.trim() === '') return { field: 'pod_name', message: 'the name of the pod is blank' }
  if (flow.direction !== 'INGRESS' && flow.direction !== 'EGRESS') {
    return { field: 'traffic_type', message: 'neither INGRESS nor EGRESS' }
  }
  if (flow.protocol.trim() === '') return { field: 'ip_protocol', message: 'blank' }
  // What is stored in capitals is measured in them: some letters have more bytes then, and edges have both texts in their key.
  const texts = [
    ['pod_name', flow.pod.name],
    ['pod_namespace', flow.pod.namespace],
    ['pod_uid', flow.pod.uid],
    ['pod_ip', flow.pod.address],
    ['ip_protocol', flow.protocol.toUpperCase()],
    ['traffic_in_out_ip', flow.peerAddress],
    ['decision', flow.decision.toUpperCase()],
  ] as const
  for (const [field, text] of texts) {
    const message = complainOfText(text ?? '')
    if (message !== undefined) return { field, message }
  }
  return undefined
}

/** Of any text that is stored by itself. */
export function complainOfText(text: string): string | undefined {
  if (text.length > mostBytes || bytesOf(text) > mostBytes) return `longer than ${mostBytes} bytes`
  // A database cannot store NUL, and the others separate the parts of a flow's key.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return /[\u0000-\u001f]/.test(text) ? 'holds a control character' : undefined
}

/** In UTF-8; a half of a surrogate pair becomes U+FFFD, which has as many. */
function bytesOf(text: string): number {
  if (text.length * 3 <= mostBytes) return text.length
  let bytes = 0
  for (const letter of text) {
    const code = letter.codePointAt(0) ?? 0
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4
  }
  return bytes
}

function checkNumbers(flow: IncomingFlow): Complaint | undefined {
  if (!isPort(flow.ownPort)) return { field: 'pod_port', message: 'not a port: 0 to 65535' }
  if (!isPort(flow.peerPort)) return { field: 'traffic_in_out_port', message: 'not a port: 0 to 65535' }
  const hits = flow.hits ?? 1
  if (Number.isInteger(hits) && hits >= 1 && hits <= mostHits) return undefined
  return { field: 'hits', message: `not a whole number from 1 to ${mostHits}` }
}

function isPort(port: number | null): boolean {
  return port === null || (Number.isInteger(port) && port >= 0 && port <= 65535)
}

function checkTime(time: Instant, { now, futureSeconds, pastSeconds }: FlowLimits): Complaint | undefined {
  const field = 'time_stamp'
  if (!isInstant(time)) return { field, message: 'not a time' }
  const latest = now + futureSeconds * microsPerSecond
  if (time > latest) return { field, message: `in the future: later than ${printInstant(latest)}` }
  const earliest = now - pastSeconds * microsPerSecond
  if (time < earliest) return { field, message: `older than what is kept: before ${printInstant(earliest)}` }
  return undefined
}

/** A pod knows its own address; the peer's may be any text. */
function checkOwnAddress(address: string | null): Complaint | undefined {
  if (address === null || address.trim() === '') return undefined
  if (isAddress(canonicalAddress(address))) return undefined
  return { field: 'pod_ip', message: 'not an IP address' }
}

function isAddress(canonical: string): boolean {
  return addressRange(canonical) !== 'not-an-address'
}
