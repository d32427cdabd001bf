/** MARK, CONNMARK and HMARK: arithmetic on the two marks, and the memory of which rule set the bits. */
import type { Option } from '#compile/iptables/rule'
import { hasConnection } from './connection'
import { parseMark } from './matches/mark'
import { type HopEvent, type Path, withHop } from './path'
import { hopAt, type Place } from './place'

type Change = (mark: number) => number

/** Undefined when the options are none that Portolan knows. */
function changeOf(options: readonly Option[]): Change | undefined {
  for (const option of options) {
    const parsed = parseMark(option.values[0] ?? '')
    if (parsed === undefined) continue
    const { value, mask } = parsed
    if (option.flag === '--set-xmark') return (mark) => ((mark & ~mask) ^ value) >>> 0
    if (option.flag === '--set-mark') return (mark) => ((mark & ~mask) | value) >>> 0
    if (option.flag === '--or-mark') return (mark) => (mark | value) >>> 0
    if (option.flag === '--and-mark') return (mark) => (mark & value) >>> 0
    if (option.flag === '--xor-mark') return (mark) => (mark ^ value) >>> 0
  }
  return undefined
}

export function applyMark(place: Place, path: Path): Path {
  const options = place.rule.action?.options ?? []
  const target = place.rule.action?.target
  if (target === 'HMARK') return setMark(place, path, undefined)
  if (target === 'CONNMARK' && !hasConnection({ fields: path.fields, table: place.table })) {
    return withHop(path, { ...hopAt(place, 'nothing'), because: 'the packet is of no connection here' })
  }
  if (target === 'CONNMARK' && options.some((option) => option.flag === '--restore-mark'))
    return restoreMark(place, path)
  if (target === 'CONNMARK' && options.some((option) => option.flag === '--save-mark')) return saveMark(place, path)
  const change = changeOf(options)
  if (target === 'CONNMARK') {
    const { connmark } = path.fields
    const next = change === undefined || connmark === undefined ? undefined : change(connmark)
    return withHop({ ...path, fields: { ...path.fields, connmark: next } }, markHop(place, 'connection mark', next))
  }
  const { mark } = path.fields
  return setMark(place, path, change === undefined || mark === undefined ? undefined : change(mark))
}

/** A cause is kept when bits are set that were not: marking twice has one reason. */
function setMark(place: Place, path: Path, mark: number | undefined): Path {
  const before = path.fields.mark
  const isSet = mark !== undefined && before !== undefined && (mark & ~before) !== 0
  const cause = { rule: place.caller ?? place.rule, conditions: place.conditions }
  const marked = { ...path, fields: { ...path.fields, mark }, markCause: isSet ? cause : path.markCause }
  return withHop(marked, markHop(place, 'mark', mark))
}

function markHop(place: Place, what: string, mark: number | undefined): HopEvent {
  const value = mark === undefined ? 'a value that is not known' : `0x${mark.toString(16)}`
  return {
    hook: place.hook,
    table: place.table,
    chain: place.chain,
    rule: place.rule,
    kind: 'rule',
    did: `${what} set to ${value}`,
  }
}

function masksOf(place: Place): { readonly nf: number; readonly ct: number } {
  const options = place.rule.action?.options ?? []
  const value = (flag: string): number => {
    const text = options.find((option) => option.flag === flag)?.values[0]
    return text === undefined ? 0xffffffff : (parseMark(text)?.value ?? 0xffffffff)
  }
  return { nf: value('--nfmask'), ct: value('--ctmask') }
}

function restoreMark(place: Place, path: Path): Path {
  const { nf, ct } = masksOf(place)
  const { mark, connmark } = path.fields
  return setMark(
    place,
    path,
    mark === undefined || connmark === undefined ? undefined : ((mark & ~nf) ^ (connmark & ct)) >>> 0,
  )
}

function saveMark(place: Place, path: Path): Path {
  const { nf, ct } = masksOf(place)
  const { mark, connmark } = path.fields
  const next = mark === undefined || connmark === undefined ? undefined : ((connmark & ~ct) ^ (mark & nf)) >>> 0
  return withHop({ ...path, fields: { ...path.fields, connmark: next } }, markHop(place, 'connection mark', next))
}
