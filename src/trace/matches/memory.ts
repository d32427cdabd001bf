/** recent, limit, hashlimit, quota and their like: matches whose answer depends on the packets before this one. */
import type { Option } from '#compile/iptables/rule'
import { askOnPath } from '../ask-source'
import { known, negateIf, type Test, undecidable } from '../question'
import type { Decide, View } from '../view'

/** `--set` always holds; `--rcheck` and `--update` ask whether the client is in the list. The usual client is new. */
export function compileRecent(options: readonly Option[]): Decide {
  const has = (flag: string): boolean => options.some((option) => option.flag === flag)
  const value = (flag: string): string | undefined => options.find((option) => option.flag === flag)?.values[0]
  const list = value('--name') ?? 'DEFAULT'
  const seconds = value('--seconds')
  const within = seconds === undefined ? '' : ` of the last ${seconds} s`
  const isNot = options.some((option) => option.not && option.flag !== '--name')
  if (has('--set')) return () => [negateIf(isNot, known(true))]
  const side = has('--rdest') ? 'destination' : 'client'
  return (view) => [
    negateIf(
      isNot,
      askOnPath(view.path, {
        key: `recent:${list}:${seconds}:${value('--hitcount')}`,
        subject: { kind: 'packet' },
        yes: `the ${side} is in list ${list}${within}`,
        no: `the ${side} is not in list ${list}`,
        usual: false,
      }),
    ),
  ]
}

/** A bucket is full when the rule is loaded: the usual packet is within the limit. */
export function compileLimit(name: string, options: readonly Option[]): Decide {
  const value = (flag: string): string | undefined => options.find((option) => option.flag === flag)?.values[0]
  const above = value('--hashlimit-above')
  const upto = value('--limit') ?? value('--hashlimit-upto') ?? value('--hashlimit')
  const rate = above ?? upto ?? '?'
  const key = `${name}:${value('--hashlimit-name') ?? ''}:${rate}:${value('--limit-burst') ?? ''}`
  return (view: View): readonly Test[] => [
    askOnPath(view.path, {
      key,
      subject: { kind: 'packet' },
      yes: above === undefined ? `traffic is within the limit of ${rate}` : `traffic is above ${rate}`,
      no: above === undefined ? `traffic is above the limit of ${rate}` : `traffic is not above ${rate}`,
      usual: above === undefined,
    }),
  ]
}

/** connlimit counts the connections there are: the usual client is below the number. */
export function compileConnlimit(options: readonly Option[]): Decide {
  const option = options.find(
    (candidate) => candidate.flag === '--connlimit-above' || candidate.flag === '--connlimit-upto',
  )
  const number = option?.values[0] ?? '?'
  const isAbove = option?.flag === '--connlimit-above'
  if (option === undefined) return () => [undecidable('-m connlimit')]
  return (view) => [
    askOnPath(view.path, {
      key: `connlimit:${option.flag}:${number}:${option.not}`,
      subject: { kind: 'packet' },
      yes: `there are ${isAbove !== option.not ? 'more than' : 'at most'} ${number} connections`,
      no: `there are ${isAbove !== option.not ? 'at most' : 'more than'} ${number} connections`,
      usual: isAbove === option.not,
    }),
  ]
}
