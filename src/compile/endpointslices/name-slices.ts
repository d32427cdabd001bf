/** Names for new slices: the look of `generateName`, but the same input always gets the same names. */
import { sha256Hex } from '#base/hash'

/** The characters that the API server's name generator uses: no vowels, nothing that is easily misread. */
const suffixDigits = 'bcdfghjklmnpqrstvwxz2456789'
const suffixLength = 5

/** A generated name has at most 63 characters, so its stem has 58. */
const longestStem = 58

export type NameSource = {
  readonly namespace: string
  /** The Service's or Endpoints' name. */
  readonly owner: string
  /** Whatever else tells this slice from the owner's others. */
  readonly traits: string
}

/** Gives out names and never the same one twice in a namespace; `taken` holds `namespace/name` of slices that exist. */
export function sliceNamer(taken: Iterable<string>): (source: NameSource) => string {
  const used = new Set(taken)
  const numbers = new Map<string, number>()
  return ({ namespace, owner, traits }) => {
    const source = `${namespace}/${owner}/${traits}`
    for (let number = (numbers.get(source) ?? 0) + 1; ; number++) {
      const name = `${stemOf(owner)}${suffixOf(`${source}/${number}`)}`
      const key = `${namespace}/${name}`
      if (used.has(key)) continue
      used.add(key)
      numbers.set(source, number)
      return name
    }
  }
}

export function generateNameOf(owner: string): string {
  return `${owner}-`
}

function stemOf(owner: string): string {
  return generateNameOf(owner).slice(0, longestStem)
}

function suffixOf(text: string): string {
  let rest = Number.parseInt(sha256Hex(text, 12), 16)
  let suffix = ''
  while (suffix.length < suffixLength) {
    suffix += suffixDigits[rest % suffixDigits.length]
    rest = Math.floor(rest / suffixDigits.length)
  }
  return suffix
}
