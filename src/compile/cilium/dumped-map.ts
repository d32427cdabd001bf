/** A map as it stands on a node: rows of bytes, each with the text that Cilium prints for it and where it comes from. */
import type { MapLayout } from './map-layouts'
import type { RowSource } from './map-source'

export type DumpedRow = {
  /** As `cilium-dbg` prints them. */
  readonly key: string
  readonly value: string
  readonly keyBytes: Uint8Array
  readonly valueBytes: Uint8Array
  readonly source: RowSource
}

/** Bytes of a value that no object tells: numbers of interfaces and the like. They are zero here, and compared with nothing. */
export type UntoldBytes = { readonly from: number; readonly to: number; readonly what: string }

export type DumpedMap = {
  readonly layout: MapLayout
  readonly rows: readonly DumpedRow[]
  readonly untold: readonly UntoldBytes[]
  /** Columns of its own; the usual two are key and value under the given titles. */
  readonly table: DumpedTable
  /** As `-o json` prints it; rows under their keys without one. */
  readonly json?: () => unknown
  /** Names rows of a lookup table of Maglev by service. */
  readonly inner?: ReadonlyMap<DumpedRow, Uint32Array>
}

export type DumpedTable =
  | { readonly kind: 'pairs'; readonly titles: readonly [string, string] }
  | {
      readonly kind: 'columns'
      readonly header: readonly string[]
      /** One list of lines for each row, in the rows' order. */
      readonly lines: readonly (readonly (readonly string[])[])[]
      readonly empty: string
    }

export function pairs(key: string, value: string): DumpedTable {
  return { kind: 'pairs', titles: [key, value] }
}
