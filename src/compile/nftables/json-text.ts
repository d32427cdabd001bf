/** JSON text with the blanks that nft puts into it: `{"a": [1, 2]}`. */

export type Json = string | number | boolean | null | readonly Json[] | JsonObject
export type JsonObject = { readonly [key: string]: Json | undefined }

/** Entries whose value is undefined are left out. */
export function jsonText(value: Json): string {
  const parts: string[] = []
  write(value, parts)
  return parts.join('')
}

function write(value: Json, parts: string[]): void {
  if (value === null || typeof value !== 'object') parts.push(JSON.stringify(value))
  else if (isList(value)) writeList(value, parts)
  else writeObject(value, parts)
}

function isList(value: readonly Json[] | JsonObject): value is readonly Json[] {
  return Array.isArray(value)
}

function writeList(list: readonly Json[], parts: string[]): void {
  parts.push('[')
  for (let at = 0; at < list.length; at++) {
    if (at > 0) parts.push(', ')
    write(list[at] ?? null, parts)
  }
  parts.push(']')
}

function writeObject(object: JsonObject, parts: string[]): void {
  let before = '{"'
  for (const key in object) {
    const value = object[key]
    if (value === undefined) continue
    parts.push(before, key, '": ')
    write(value, parts)
    before = ', "'
  }
  parts.push(before === '{"' ? '{}' : '}')
}
