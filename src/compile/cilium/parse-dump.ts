/** One file of a dump: a table, JSON, or bytes, with what a sysdump wraps around it; what is cut short is read as far as it goes. */
import type { Finding, Origin } from '#base/finding'
import { countOf } from '#base/text'
import { backendsByNumber, decodeRaw, type RawRow } from './decode-raw'
import { mapsFinding } from './findings'
import type { FoundMap } from './found-map'
import { type JsonDump, parseDumpJson } from './parse-dump-json'
import { parseTable } from './parse-dump-table'
import { parseRawText, type RawRows } from './raw-rows'

/** Of a folder much is no dump of a map, which is told once. */
export type DumpFile = { readonly file: string; readonly text: string; readonly isPart?: boolean }
export type DumpParse = { readonly maps: readonly FoundMap[]; readonly findings: readonly Finding[] }

type Raw = {
  readonly name: string
  readonly rows: readonly RawRow[]
  /** Rows that are no bytes. */
  readonly unread: number
  readonly isCut: boolean
  readonly file: string
}
type Draft = { readonly maps: FoundMap[]; readonly raws: Raw[]; readonly findings: Finding[] }

/** Maps of bytes are translated once all are read, as slots name backends of another map. */
export function parseDump(files: readonly DumpFile[]): DumpParse {
  const draft: Draft = { maps: [], raws: [], findings: [] }
  const unknown = files.filter((file) => !parseFile(file, draft))
  draft.findings.push(...tellUnknown(unknown))
  const backends = new Map(
    ['4', '6'].map((family) => {
      const own = draft.raws.filter(({ name }) => name.startsWith(`cilium_lb${family}_backends_v`))
      return [family, backendsByNumber(own.flatMap(({ rows }) => rows))] as const
    }),
  )
  for (const raw of draft.raws)
    addRaw(raw, backends.get(raw.name.startsWith('cilium_lb6') ? '6' : '4') ?? new Map(), draft)
  return { maps: draft.maps, findings: draft.findings }
}

function addRaw(
  { name, rows, unread, isCut, file }: Raw,
  backends: ReadonlyMap<number, string>,
  { maps, findings }: Draft,
): void {
  const decoded = decodeRaw(name, rows, backends)
  if (decoded === undefined) {
    findings.push(mapsFinding('maps.dump-not-compared', { message: `${name} is not compared`, origin: { file } }))
    return
  }
  const { bad, ...map } = decoded
  if (bad.length > 0) {
    const message = `${countOf(bad.length, 'row')} of ${name} ${bad.length === 1 ? 'has' : 'have'} sizes that no known version has`
    findings.push(mapsFinding('maps.dump-bad-row', { message, origin: bad[0]?.origin ?? { file } }))
  }
  maps.push({ ...map, isCut, unread: unread + bad.length, origin: { file } })
}

/** False for what no command that is compared prints. */
function parseFile({ file, text }: DumpFile, draft: Draft): boolean {
  const body = unwrap(text)
  const trimmed = body.text.trim()
  if (trimmed === '' || /^(?:No entries found|Policy stats empty|Cannot find|no maps found)/.test(trimmed)) return true
  const isJson = /^[[{]/.test(trimmed)
  return isJson ? parseJsonText(file, trimmed, draft) : parseLines(file, body, draft)
}

function tellUnknown(files: readonly DumpFile[]): readonly Finding[] {
  const parts = files.filter(({ isPart }) => isPart === true)
  const own = files.filter(({ isPart }) => isPart !== true)
  const [first] = parts
  return [
    ...own.map(({ file }) =>
      mapsFinding('maps.dump-unknown', {
        message: 'this is the output of no command that is compared',
        origin: { file },
      }),
    ),
    ...(first === undefined
      ? []
      : [
          mapsFinding('maps.dump-unknown', {
            message:
              `${countOf(parts.length, 'file')} of the folder ${parts.length === 1 ? 'is' : 'are'} no dump that is compared, this one ${parts.length === 1 ? '' : 'the first'}`.trimEnd(),
            origin: { file: first.file },
          }),
        ]),
  ]
}

type Body = { readonly text: string; readonly firstLine: number; readonly isCut: boolean }

/** A sysdump puts the command above its output, and fences around it. */
export function unwrap(text: string): Body {
  const lines = text.split(/\r?\n/)
  const isCut = lines.at(-1) !== ''
  const fence = lines.findIndex((line) => line.startsWith('```'))
  if (fence < 0 || fence > 5) return { text, firstLine: 1, isCut }
  const end = lines.findIndex((line, at) => at > fence && line.startsWith('```'))
  const inner = lines.slice(fence + 1, end < 0 ? undefined : end)
  return { text: inner.join('\n'), firstLine: fence + 2, isCut: end < 0 }
}

function parseJsonText(file: string, text: string, { maps, raws, findings }: Draft): boolean {
  const { value, isCut } = readJson(text)
  if (isCut) findings.push(cutShort({ file }))
  const endpoint = endpointOf(file)
  const dump: JsonDump | undefined = parseDumpJson(value, { file, isCut, ...(endpoint !== undefined && { endpoint }) })
  if (dump === undefined) return /^\[\s*\]$|^\{\s*\}$/.test(text)
  if (dump.kind === 'maps') maps.push(...dump.maps)
  else raws.push({ name: mapNameOf(file) ?? 'the map', rows: dump.rows, unread: 0, isCut, file })
  return true
}

/** What was cut short is ended at the last whole entry. */
function readJson(text: string): { readonly value: unknown; readonly isCut: boolean } {
  const whole = tryJson(text)
  if (whole !== undefined) return { value: whole, isCut: false }
  const close = text.startsWith('[') ? ']' : '}'
  const ends = [...text.matchAll(text.startsWith('[') ? /\}/g : /\]/g)].map(({ index }) => index + 1)
  for (const end of ends.reverse().slice(0, 200)) {
    const value = tryJson(`${text.slice(0, end)}${close}`)
    if (value !== undefined) return { value, isCut: true }
  }
  return { value: undefined, isCut: true }
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function cutShort(origin: Origin): Finding {
  return mapsFinding('maps.dump-cut', {
    message: 'the dump ends in the middle: what it holds is compared, and nothing is called missing',
    origin,
    hint: 'take it anew, and check that the disk is not full',
  })
}

function parseLines(file: string, { text, firstLine, isCut }: Body, draft: Draft): boolean {
  const raw = parseRawText(file, text.replaceAll('\r\n', '\n'), firstLine)
  if (raw !== undefined) return addBytes(file, raw, draft)
  const lines = text.split(/\r?\n/)
  let found = false
  // `bpf policy get --all` prints a table for each endpoint, under its number.
  const heads = lines.flatMap((line, at) => (line.startsWith('Endpoint ID:') ? [at] : []))
  const starts = heads.length === 0 ? [0] : heads
  for (const [index, from] of starts.entries()) {
    const part = lines.slice(from, starts[index + 1])
    const endpoint = Number(/^Endpoint ID: *(\d+)/.exec(part[0] ?? '')?.[1] ?? endpointOf(file))
    const isLast = index === starts.length - 1
    const table = parseTable({
      file,
      lines: part,
      firstLine: firstLine + from,
      isCut: isCut && isLast,
      ...(!Number.isNaN(endpoint) && { endpoint }),
    })
    if (table === undefined) continue
    found = true
    draft.maps.push(...table.maps)
    tellLines(file, table.badLines, draft)
  }
  if (found && isCut) draft.findings.push(cutShort({ file, line: firstLine + lines.length - 1 }))
  return found
}

function tellLines(file: string, bad: readonly number[], { findings }: Draft): void {
  const [line] = bad
  if (line === undefined) return
  const message = `${countOf(bad.length, 'line')} cannot be read and ${bad.length === 1 ? 'is' : 'are'} left out`
  findings.push(mapsFinding('maps.dump-bad-row', { message, origin: { file, line } }))
}

function addBytes(file: string, { rows, badLines, isCut }: RawRows, draft: Draft): boolean {
  tellLines(file, badLines, draft)
  if (isCut) draft.findings.push(cutShort({ file }))
  draft.raws.push({ name: mapNameOf(file) ?? 'the map', rows, unread: badLines.length, isCut, file })
  return true
}

export function mapNameOf(file: string): string | undefined {
  const names = file.match(
    /cilium_(?:lxc|ipcache(?:_v2)?|policy_(?:v\d_)?\d+|lb[46]_[a-z]+(?:_(?:nat|range|sk))?(?:_v\d)?|egress_gw_policy_v[46]|tunnel_map|ipmasq_v[46]|[a-z0-9_]+)/g,
  )
  return names?.at(-1)
}

/** `…-policy-get-102.md`, `policy_00102.txt`. */
function endpointOf(file: string): number | undefined {
  const name = file.split('/').at(-1) ?? ''
  const found = /policy[^/]*?[-_ ](\d+)(?:[-_. ][a-z]*)*$/i.exec(name)
  return found === null ? undefined : Number(found[1])
}
