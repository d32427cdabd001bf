/** What a matched rule's target does to a packet: go on, return, or end the table's walk. */
import { applyMark } from './apply-mark'
import { applyDnat, applyNetmap, applyRedirect, applySourceNat, applyTproxy } from './apply-nat'
import { cameBack } from './connection'
import { assume, type HopEvent, type Path, withHop } from './path'
import { type Effect, end, endUnknown, hopAt, optionValue, type Place } from './place'
import type { Question } from './question'

export function applyTarget(place: Place, path: Path): Effect {
  const action = place.rule.action
  if (action === undefined) return goOn(path, hopAt(place, 'counted, nothing more'))
  switch (action.target) {
    case 'ACCEPT':
      return end(path, 'accept', hopAt(place, 'accepted by this table'))
    case 'DROP':
      return end(path, 'drop', hopAt(place, 'dropped'))
    case 'REJECT':
      return end(
        path,
        'reject',
        hopAt(place, `rejected with ${optionValue(action.options, '--reject-with') ?? 'port unreachable'}`),
      )
    case 'RETURN':
      return { kind: 'return', paths: [withHop(path, hopAt(place, 'returned to the calling chain'))] }
    case 'QUEUE':
    case 'NFQUEUE':
      return applyQueue(place, path)
    case 'DNAT':
      return applyDnat(place, path)
    case 'REDIRECT':
      return applyRedirect(place, path)
    case 'SNAT':
    case 'MASQUERADE':
      return applySourceNat(place, path)
    case 'NETMAP':
      return applyNetmap(place, path)
    case 'TPROXY':
      return applyTproxy(place, path)
    case 'MARK':
    case 'CONNMARK':
    case 'HMARK':
      return { kind: 'continue', paths: [applyMark(place, path)] }
    case 'NOTRACK':
      return notTracked(place, path)
    case 'CT':
      return applyCt(place, path)
    case 'SYNPROXY':
    case 'MIRROR':
    case 'CLUSTERIP':
      return endUnknown(
        path,
        hopAt(place, `handed to ${action.target}`),
        `what ${action.target} answers is not part of a ruleset`,
      )
    default:
      return goOn(
        path,
        hopAt(place, plainTargets[action.target] ?? `${action.target}, which changes no later rule's answer`),
      )
  }
}

const plainTargets: Readonly<Record<string, string>> = {
  LOG: 'logged',
  NFLOG: 'logged',
  ULOG: 'logged',
  TRACE: 'traced from here on',
  CHECKSUM: 'checksum filled in',
  TCPMSS: 'TCP maximum segment size set',
  SET: 'set changed',
  TEE: 'copied',
  AUDIT: 'audited',
}

function goOn(path: Path, hop: HopEvent): Effect {
  return { kind: 'continue', paths: [withHop(path, hop)] }
}

/** A packet that came back in on `lo` keeps the connection it has (xt_CT.c). */
function notTracked(place: Place, path: Path): Effect {
  if (cameBack(path.fields)) return goOn(path, hopAt(place, 'nothing: it is of a connection already'))
  return goOn({ ...path, fields: { ...path.fields, state: 'UNTRACKED' } }, hopAt(place, 'not tracked'))
}

function applyCt(place: Place, path: Path): Effect {
  const options = place.rule.action?.options ?? []
  if (options.some((option) => option.flag === '--notrack')) return notTracked(place, path)
  return goOn(path, hopAt(place, 'connection tracking set up'))
}

/** A program decides. With `--queue-bypass` and no program the packet goes on as if accepted. */
function applyQueue(place: Place, path: Path): Effect {
  const queue = optionValue(place.rule.action?.options ?? [], '--queue-num', '--queue-balance') ?? '0'
  const question: Question = {
    key: `queue:${queue}`,
    subject: { kind: 'fact' },
    yes: `the program at queue ${queue} accepts it`,
    no: `the program at queue ${queue} drops it`,
    usual: true,
  }
  const hop = hopAt(place, `handed to the program at queue ${queue}`)
  const accepted = end(assume(path, question, true), 'accept', hop)
  const dropped = end(assume(path, question, false), 'drop', hop)
  return { kind: 'end', paths: [...accepted.paths, ...dropped.paths] }
}
