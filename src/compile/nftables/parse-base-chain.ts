/** What makes a chain one that the kernel calls: `type filter hook input priority filter; policy accept;`. */
import { priorityOf } from './priority-names'
import type { BaseChain, Hook, TableFamily } from './ruleset'
import type { NftCursor } from './tokenize-nft'

const types: readonly BaseChain['type'][] = ['filter', 'nat', 'route']
const hooks: readonly Hook[] = ['ingress', 'prerouting', 'input', 'forward', 'output', 'postrouting', 'egress']

/** Up to the end of the statement; policy and flags are statements of their own. A failure is left in the cursor. */
export function parseBaseChain(cursor: NftCursor): BaseChain {
  cursor.advance()
  const type = types.find((one) => cursor.is(one))
  if (type === undefined) cursor.fail(`\`${cursor.word}\` is no type of a chain`)
  cursor.advance()
  cursor.expect('hook')
  const hook = findHook(cursor.word)
  if (hook === undefined) cursor.fail(`\`${cursor.word}\` is no hook`)
  cursor.advance()
  const devices: string[] = []
  let priority = 0
  for (;;) {
    if (cursor.take('device')) devices.push(cursor.takeText('the device'))
    else if (cursor.take('devices')) devices.push(...parseDevices(cursor))
    else if (cursor.take('priority')) priority = parsePriority(cursor, hook ?? 'input')
    else break
  }
  return { type: type ?? 'filter', hook: hook ?? 'input', priority, devices, flags: [] }
}

export function findHook(word: string): Hook | undefined {
  return hooks.find((hook) => hook === word)
}

export function findChainType(word: string): BaseChain['type'] | undefined {
  return types.find((type) => type === word)
}

/** `= { eth0, "eth1" }`. */
export function parseDevices(cursor: NftCursor): string[] {
  cursor.take('=')
  const devices: string[] = []
  cursor.open('{')
  while (!cursor.is('}') && cursor.failure === undefined) {
    devices.push(cursor.takeText('the device'))
    if (!cursor.take(',')) break
  }
  cursor.close('}')
  return devices
}

/** After `priority`: `-100`, `filter`, `dstnat - 10`, `filter+5`. */
export function parsePriority(cursor: NftCursor, hook: Hook): number {
  const match = /^([a-z]*)([+-]?\d+)?$/.exec(cursor.word)
  if (match === null || cursor.word === '') {
    cursor.fail(`\`${cursor.word}\` is no priority`)
    return 0
  }
  const [, name = '', number] = match
  cursor.advance()
  const base = name === '' ? 0 : namedPriority(cursor.scope.family, hook, name)
  if (base === undefined) cursor.fail(`\`${name}\` is no priority`)
  const step = number === undefined ? takeStep(cursor) : Number(number)
  return (base ?? 0) + step
}

/** Newer ones of nft name `dstnat` at other hooks too. */
function namedPriority(family: TableFamily, hook: Hook, name: string): number | undefined {
  const at: readonly Hook[] = [hook, 'prerouting', 'postrouting', 'output']
  return at.map((one) => priorityOf(family, one, name)).find((priority) => priority !== undefined)
}

function takeStep(cursor: NftCursor): number {
  const sign = cursor.is('-') ? -1 : cursor.is('+') ? 1 : 0
  if (sign === 0) return 0
  cursor.advance()
  return sign * cursor.takeNumber('the step')
}
