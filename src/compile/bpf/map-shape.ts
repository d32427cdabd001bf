/** What a map is made of: its kind and the sizes of its rows. */

/** By the numbers of `enum bpf_map_type`. */
export const mapTypes = {
  hash: 1,
  array: 2,
  programArray: 3,
  perCpuHash: 5,
  perCpuArray: 6,
  lruHash: 9,
  lruPerCpuHash: 10,
  prefixTrie: 11,
  arrayOfMaps: 12,
  hashOfMaps: 13,
  ringBuffer: 27,
} as const
export type MapType = keyof typeof mapTypes

export type MapShape = {
  /** At most 15 characters, without dots. */
  readonly name: string
  readonly type: MapType
  readonly keySize: number
  readonly valueSize: number
  readonly maxEntries: number
}
