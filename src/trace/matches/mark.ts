/** mark and connmark: the packet's and the connection's mark, under a mask; without a connection connmark never matches. */
import type { Option } from '#compile/iptables/rule'
import { hasConnection } from '../connection'
import { known, negateIf, type Test, undecidable } from '../question'
import type { Decide, View } from '../view'

export type MaskedMark = { readonly value: number; readonly mask: number }

/** `0x4000/0x4000`, `0x1`, decimal; undefined when it is neither. */
export function parseMark(text: string): MaskedMark | undefined {
  const [value, mask] = text.split('/').map(parseNumber)
  if (value === undefined || text.split('/').length > 2) return undefined
  if (text.includes('/') && mask === undefined) return undefined
  return { value, mask: mask ?? 0xffffffff }
}

function parseNumber(text: string): number | undefined {
  if (!/^(0x[0-9a-fA-F]{1,8}|\d{1,10})$/.test(text)) return undefined
  const value = Number(text)
  return value <= 0xffffffff ? value : undefined
}

export function compileMark(name: 'mark' | 'connmark', options: readonly Option[]): Decide {
  const tests = options.map((option) => {
    const wanted = parseMark(option.values[0] ?? '')
    return (view: View): Test => {
      if (name === 'connmark' && !hasConnection(view)) return known(false)
      const mark = name === 'mark' ? view.fields.mark : view.fields.connmark
      if (wanted === undefined || mark === undefined) {
        return negateIf(option.not, undecidable(`-m ${name} --mark ${option.values[0]}`))
      }
      return negateIf(option.not, known((mark & wanted.mask) >>> 0 === wanted.value))
    }
  })
  return (view) => tests.map((test) => test(view))
}
