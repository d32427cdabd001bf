/** Takes the JSON of `nft -j` apart, entry by entry, so that a cut text gives what it holds; and reads values out of it. */
import type { Json, JsonObject } from './json-text'

export type JsonEntry = { readonly index: number; readonly json: Json | undefined }

export type JsonEntries = { readonly entries: Iterable<JsonEntry>; readonly isCut: () => boolean }

/** Undefined when no `{"nftables": [` is in the text. What a terminal left before and behind is passed over. */
export function splitEntries(text: string): JsonEntries | undefined {
  const head = /\{\s*"nftables"\s*:\s*\[/.exec(text)
  if (head === null) return undefined
  let isWhole = false
  const entries = function* (): Generator<JsonEntry> {
    let at = head.index + head[0].length
    for (let index = 0; ; index++) {
      while (/[\s,]/.test(text.charAt(at))) at++
      if (text.charAt(at) === ']') isWhole = true
      if (text.charAt(at) !== '{') return
      const end = endOfObject(text, at)
      if (end < 0) return
      yield { index, json: parseJson(text.slice(at, end)) }
      at = end
    }
  }
  return { entries: entries(), isCut: () => !isWhole }
}

function endOfObject(text: string, start: number): number {
  let open = 0
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 34) {
      at = endOfString(text, at)
      if (at < 0) return -1
    } else if (code === 123) open++
    else if (code === 125 && --open === 0) return at + 1
  }
  return -1
}

function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0
    while (text.charCodeAt(at - 1 - slashes) === 92) slashes++
    if (slashes % 2 === 0) return at
  }
  return -1
}

/** Numbers that a number cannot hold exactly become texts. */
function parseJson(text: string): Json | undefined {
  const isLong = /\d{16}/.test(text)
  const exact = isLong ? text.replaceAll(/"(?:[^"\\]|\\.)*"|\d{16,}/g, quoteNumber) : text
  try {
    return JSON.parse(exact) as Json
  } catch {
    return undefined
  }
}

function quoteNumber(token: string): string {
  return token.startsWith('"') || Number.isSafeInteger(Number(token)) ? token : `"${token}"`
}

export function isObject(json: Json | undefined): json is JsonObject {
  return typeof json === 'object' && json !== null && !Array.isArray(json)
}

export function isArray(json: Json | undefined): json is readonly Json[] {
  return Array.isArray(json)
}

export function fieldOf(json: Json | undefined, key: string): Json | undefined {
  return isObject(json) ? json[key] : undefined
}

export function textOf(json: Json | undefined): string | undefined {
  return typeof json === 'string' ? json : undefined
}

export function numberOf(json: Json | undefined): number | undefined {
  if (typeof json === 'number') return json
  return typeof json === 'string' && /^-?\d+$/.test(json) ? Number(json) : undefined
}

/** One text, or several: nft leaves the brackets out around one. */
export function textsOf(json: Json | undefined): string[] {
  if (isArray(json)) return json.flatMap((item) => textOf(item) ?? [])
  return typeof json === 'string' ? [json] : []
}

/** The one key of `{"match": …}` and what it holds. */
export function onlyEntry(json: Json | undefined): readonly [string, Json] | undefined {
  if (!isObject(json)) return undefined
  for (const key in json) return [key, json[key] ?? null]
  return undefined
}
