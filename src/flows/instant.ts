/** Instants: whole microseconds since the epoch, read from and printed as the texts that APIs and databases use. */

/** Microseconds since 1970-01-01T00:00:00Z; a safe integer until the year 2255. */
export type Instant = number

export const microsPerSecond = 1_000_000

/** The years 1 to 9999: what RFC 3339 and databases can both write. */
const earliest = Date.parse('0001-01-01T00:00:00Z') * 1000
const latest = Date.parse('9999-12-31T23:59:59Z') * 1000

/** Whether it can be printed; sums of times and ages may lie anywhere. */
export function isInstant(micros: number): boolean {
  return micros >= earliest && micros <= latest
}

const pattern =
  /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?:([Zz])|([+\- ])(\d\d)(?::?(\d\d))?)?$/

/**
 * RFC 3339 with any offset, or without one, which then is UTC; undefined when the text is neither, or no instant. Digits after the sixth of a
 * fraction are dropped. A blank before the offset is a plus sign: that is what a query string makes of an unescaped one.
 */
export function parseInstant(text: string): Instant | undefined {
  return parseUsual(text) ?? parseAny(text)
}

function parseAny(text: string): Instant | undefined {
  const match = pattern.exec(text)
  if (match === null) return undefined
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return undefined
  if (hour > 23 || minute > 59 || second > 60) return undefined
  const offset = offsetMinutes(match)
  if (offset === undefined) return undefined
  const seconds = dayNumber(year, month, day) * 86_400 + hour * 3600 + (minute - offset) * 60 + second
  const micros = seconds * microsPerSecond + Number((match[7] ?? '').slice(0, 6).padEnd(6, '0'))
  return isInstant(micros) ? micros : undefined
}

/**
 * What flows bring by the thousand: `2026-07-23T09:14:02`, a fraction of three, six or nine digits, UTC with a `Z` or without saying so. A
 * fifth of what the pattern takes; undefined for all else, whatever it is.
 */
function parseUsual(text: string): Instant | undefined {
  const end = text.charCodeAt(text.length - 1) === zulu ? text.length - 1 : text.length
  const isUsual =
    (end === 19 || ((end === 23 || end === 26 || end === 29) && text.charCodeAt(19) === point)) &&
    text.charCodeAt(4) === dash &&
    text.charCodeAt(7) === dash &&
    text.charCodeAt(10) === midst &&
    text.charCodeAt(13) === colon &&
    text.charCodeAt(16) === colon
  if (!isUsual) return undefined
  const [hour, minute, second] = [numberAt(text, 11, 13), numberAt(text, 14, 16), numberAt(text, 17, 19)]
  if (!(hour <= 23 && minute <= 59 && second <= 59)) return undefined
  const [year, month, day] = [numberAt(text, 0, 4), numberAt(text, 5, 7), numberAt(text, 8, 10)]
  if (!(year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month))) return undefined
  const fraction = end === 19 ? 0 : end === 23 ? numberAt(text, 20, 23) * 1000 : numberAt(text, 20, 26)
  if (Number.isNaN(fraction) || (end === 29 && Number.isNaN(numberAt(text, 26, 29)))) return undefined
  return (dayNumber(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second) * microsPerSecond + fraction
}

const [dash, colon, point, midst, zulu] = [0x2d, 0x3a, 0x2e, 0x54, 0x5a]

/** NaN where one of them is no digit. */
function numberAt(text: string, start: number, end: number): number {
  let value = 0
  for (let index = start; index < end; index++) {
    const digit = text.charCodeAt(index) - 0x30
    if (!(digit >= 0 && digit <= 9)) return Number.NaN
    value = value * 10 + digit
  }
  return value
}

/** `2026-07-23T09:14:02.118377`: UTC without saying so, the fraction only when there is one. */
export function printNaive(instant: Instant): string {
  const seconds = Math.floor(instant / microsPerSecond)
  const micros = instant - seconds * microsPerSecond
  const text = new Date(seconds * 1000).toISOString().slice(0, -5)
  if (micros === 0) return text
  return `${text}.${micros % 1000 === 0 ? digits(micros / 1000, 3) : digits(micros, 6)}`
}

/** `2026-07-23T09:14:02.118377Z`. */
export function printInstant(instant: Instant): string {
  return `${printNaive(instant)}Z`
}

/** `2026-07-23`, the UTC day an instant lies in. */
export function printDay(instant: Instant): string {
  return printNaive(instant).slice(0, 10)
}

function offsetMinutes(match: RegExpExecArray): number | undefined {
  if (match[9] === undefined) return 0
  const [hours, minutes] = [Number(match[10]), Number(match[11] ?? 0)]
  if (hours > 23 || minutes > 59) return undefined
  return (match[9] === '-' ? -1 : 1) * (hours * 60 + minutes)
}

/** Days since 1970-01-01 in the proleptic Gregorian calendar; years that begin in March have their leap day last. */
function dayNumber(year: number, month: number, day: number): number {
  const [marchYear, marchMonth] = month > 2 ? [year, month - 3] : [year - 1, month + 9]
  const leapDays = Math.floor(marchYear / 4) - Math.floor(marchYear / 100) + Math.floor(marchYear / 400)
  return marchYear * 365 + leapDays + Math.floor((153 * marchMonth + 2) / 5) + day - 719_469
}

function daysIn(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28
  return [4, 6, 9, 11].includes(month) ? 30 : 31
}

function digits(value: number, count: number): string {
  return String(value).padStart(count, '0')
}
