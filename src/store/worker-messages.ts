/** What the broker's thread and the embedded database's thread tell each other. */
import type { Value } from './engine'

export type WorkerStart = {
  /** Absent: in memory. */
  readonly directory?: string
  /** A packed data directory to start a new one from. */
  readonly template?: string
}

export type WorkerQuestion =
  | { readonly kind: 'query'; readonly id: number; readonly text: string; readonly values: readonly Value[] }
  | { readonly kind: 'close' }

export type WorkerAnswer =
  | { readonly kind: 'opened' }
  | { readonly kind: 'not-opened'; readonly message: string; readonly code: string }
  | { readonly kind: 'rows'; readonly id: number; readonly rows: readonly unknown[]; readonly affected: number }
  | { readonly kind: 'error'; readonly id: number; readonly message: string; readonly code: string }
