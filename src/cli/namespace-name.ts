/** What may be a namespace's name: the API server's rule (RFC 1123). */
import { plainText } from '#base/text'

export function isNamespace(text: string): boolean {
  return /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(text)
}

/** A sentence without its end. */
export function explainBadNamespace(text: string): string {
  return `"${plainText(text)}" is not a namespace's name: 1 to 63 of a-z, 0-9 and "-", with no "-" at either end`
}
