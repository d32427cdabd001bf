/** JSON text with the blanks that nft puts into it: `{"a": [1, 2]}`. */

export type Json = string | number | boolean | null | readonly Json[] | JsonObject
export type JsonObject = { readonly [key: string]: Json | undefined }

/** Entries whose value is undefined are left out. A line end inside a text is escaped, so every one here is ours. */
export function jsonText(value: Json): string {
  return JSON.stringify(value, undefined, 1).replace(/,\n */g, ', ').replace(/\n */g, '')
}
