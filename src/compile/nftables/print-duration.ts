/** Durations as nft writes them: `1d1h1m1s`, `59m59s996ms`. */

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const

export function printDuration(milliseconds: number): string {
  let left = milliseconds
  let text = ''
  for (const [unit, length] of units) {
    const count = Math.floor(left / length)
    if (count > 0) text += `${count}${unit}`
    left -= count * length
  }
  return text === '' ? '0s' : text
}
