/** What an error of the system says, whichever realm it was made in: `instanceof Error` holds in one only. */

/** `ENOENT`, `Z_BUF_ERROR`; empty when the error has none. */
export function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''
}

export function reasonOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : String(error)
}
