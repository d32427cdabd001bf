/** Spans of time as nft prints them: `1d2h3m4s5ms`, or seconds alone. */

const unitMilliseconds: Readonly<Record<string, number>> = {
  w: 604_800_000,
  d: 86_400_000,
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  '': 1000,
}

export function parseDurationMilliseconds(text: string): number | undefined {
  if (!/^(?:\d+(?:ms|[wdhms]))+$|^\d+$/.test(text)) return undefined
  let sum = 0
  for (const [, count, unit = ''] of text.matchAll(/(\d+)(ms|[wdhms])?/g)) {
    sum += Number(count) * (unitMilliseconds[unit] ?? 0)
  }
  return sum
}
