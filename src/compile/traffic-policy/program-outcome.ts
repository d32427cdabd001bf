/** The part of the datapath's program that counts, tells of denials, and says what becomes of the packet. */
import { reg } from '#compile/bpf/assembler'
import {
  configLayout,
  connectionKeyLayout,
  counterLayout,
  eventBudgetLayout,
  eventLayout,
  eventsPerTick,
  fallbackRow,
  modeNumbers,
} from './datapath-maps'
import { context, type Emitter, fp, stack } from './program-frame'
import { emitNow, emitRow } from './program-tables'
import { type FallbackReason, reasonNumber, ruleReasonNumber } from './reasons'
import { directionNumbers, ruleLayout, rulesOffset } from './snapshot-layout'

/** "Not mine to say": other programs on the hook run, and then the packet goes on. */
const goOn = -1
const drop = 2
const noRule = 0xff

/** A hit of the rule on the stack, of the snapshot at r8, and the packet's bytes. */
export function emitCountRule(emitter: Emitter): void {
  const { a } = emitter
  const uncounted = a.newLabel('no_counter_row')
  a.load('u8', 1, fp, stack.rule)
  a.alu('and', 1, 63)
  a.alu('lsh', 1, 4)
  a.mov(2, reg(8))
  a.alu('add', 2, reg(1))
  a.load('u32', 1, 2, rulesOffset + ruleLayout.counterRow)
  emitRow(emitter, 'counters')
  a.jumpIf('eq', 0, 0, uncounted)
  a.load('u64', 1, 0, counterLayout.hits)
  a.alu('add', 1, 1)
  a.store('u64', 0, counterLayout.hits, reg(1))
  a.load('u32', 2, 6, context.length)
  a.load('u64', 1, 0, counterLayout.bytes)
  a.alu('add', 1, reg(2))
  a.store('u64', 0, counterLayout.bytes, reg(1))
  a.place(uncounted)
}

/** A packet that is still to be segmented counts as the packets it will be. */
export function emitCountFallback(emitter: Emitter, reason: FallbackReason): void {
  const { a, config } = emitter
  const uncounted = a.newLabel('no_fallback_row')
  const segmented = a.newLabel('segments')
  a.load('u32', 1, 6, context.slot)
  a.alu('mul', 1, fallbackRow(1, 'ingress', 'established') - fallbackRow(0, 'ingress', 'established'))
  a.alu('add', 1, fallbackRow(0, config.direction, reason))
  emitRow(emitter, 'fallbacks')
  a.jumpIf('eq', 0, 0, uncounted)
  a.load('u32', 2, 6, context.segments)
  a.jumpIf('ne', 2, 0, segmented)
  a.mov(2, 1)
  a.place(segmented)
  a.load('u64', 1, 0, 0)
  a.alu('add', 1, reg(2))
  a.store('u64', 0, 0, reg(1))
  a.place(uncounted)
}

export function emitPassByRule({ a }: Emitter): void {
  a.load('u8', 1, fp, stack.rule)
  a.alu('lsh', 1, 16)
  a.alu('or', 1, ruleReasonNumber << 8)
  a.load('u8', 2, fp, stack.path)
  a.alu('lsh', 2, 24)
  a.alu('or', 1, reg(2))
  a.store('u32', 6, context.decision, reg(1))
  a.mov(0, goOn)
  a.exit()
}

export function emitPassBy(emitter: Emitter, reason: FallbackReason): void {
  const { a } = emitter
  emitCountFallback(emitter, reason)
  a.mov(1, (reasonNumber(reason) << 8) | (noRule << 16))
  a.store('u32', 6, context.decision, reg(1))
  a.mov(0, goOn)
  a.exit()
}

/** r7 is the reason's number; the rule on the stack is the one that denied, or none. */
export function emitDeny(emitter: Emitter): void {
  const { a } = emitter
  const dropped = a.newLabel('dropped')
  a.mov(1, reg(7))
  a.alu('lsh', 1, 8)
  a.alu('or', 1, 1)
  a.load('u8', 2, fp, stack.rule)
  a.alu('lsh', 2, 16)
  a.alu('or', 1, reg(2))
  a.load('u8', 2, fp, stack.path)
  a.alu('lsh', 2, 24)
  a.alu('or', 1, reg(2))
  a.store('u32', 6, context.decision, reg(1))
  a.loadMapValue(1, 'config', 0)
  a.load('u32', 9, 1, configLayout.mode)
  emitEvent(emitter)
  a.jumpIf('eq', 9, modeNumbers.enforce, dropped)
  a.mov(0, goOn)
  a.exit()
  a.place(dropped)
  a.mov(0, drop)
  a.exit()
}

/** r9 is the mode. A flood of denials costs a few instructions a packet: the budget of the tick is soon spent. */
function emitEvent(emitter: Emitter): void {
  const { a } = emitter
  const done = a.newLabel('event_done')
  const sameTick = a.newLabel('same_tick')
  const lost = a.newLabel('event_lost')
  emitNow(emitter)
  a.mov(8, reg(0))
  a.mov(1, 0)
  emitRow(emitter, 'eventBudget')
  a.jumpIf('eq', 0, 0, done)
  a.load('u64', 1, 0, eventBudgetLayout.tick)
  a.jumpIf('eq', 1, reg(8), sameTick)
  a.store('u64', 0, eventBudgetLayout.tick, reg(8))
  a.store('u64', 0, eventBudgetLayout.count, 0)
  a.place(sameTick)
  a.load('u64', 1, 0, eventBudgetLayout.count)
  a.alu('add', 1, 1)
  a.jumpIf('gt', 1, eventsPerTick, lost)
  a.store('u64', 0, eventBudgetLayout.count, reg(1))
  // The row outlives the calls that follow, in the place of a register they would overwrite.
  a.mov(8, reg(0))
  a.loadMap(1, 'events')
  a.mov(2, eventLayout.size)
  a.mov(3, 0)
  a.call('ringbuf_reserve')
  const reserved = a.newLabel('event_reserved')
  a.jumpIf('ne', 0, 0, reserved)
  a.mov(0, reg(8))
  a.place(lost)
  a.load('u64', 1, 0, eventBudgetLayout.lost)
  a.alu('add', 1, 1)
  a.store('u64', 0, eventBudgetLayout.lost, reg(1))
  a.jump(done)
  a.place(reserved)
  a.mov(8, reg(0))
  emitEventFields(emitter)
  a.mov(1, reg(8))
  // The reader comes by itself: waking it for each denial would cost more than the decision.
  a.mov(2, 1)
  a.call('ringbuf_submit')
  a.place(done)
}

function emitEventFields(emitter: Emitter): void {
  const { a, config } = emitter
  const key = connectionKeyLayout
  a.call('ktime_get_ns')
  a.store('u64', 8, eventLayout.nanoseconds, reg(0))
  a.load('u64', 1, fp, stack.token)
  a.store('u64', 8, eventLayout.token, reg(1))
  a.load('u16', 1, fp, stack.key + key.slot)
  a.store('u32', 8, eventLayout.slot, reg(1))
  a.store('u8', 8, eventLayout.direction, directionNumbers[config.direction])
  a.store('u8', 8, eventLayout.reason, reg(7))
  a.load('u8', 1, fp, stack.rule)
  a.store('u8', 8, eventLayout.rule, reg(1))
  a.store('u8', 8, eventLayout.mode, reg(9))
  a.store('u32', 8, eventLayout.kind, 0)
  a.load('u8', 1, fp, stack.key + key.kind)
  a.store('u8', 8, eventLayout.kind, reg(1))
  a.load('u8', 1, fp, stack.protocol)
  a.store('u8', 8, eventLayout.protocol, reg(1))
  for (let word = 0; word < 32; word += 4) {
    a.load('u32', 1, fp, stack.key + key.local + word)
    a.store('u32', 8, eventLayout.local + word, reg(1))
  }
  a.load('u32', 1, fp, stack.key + key.localPort)
  a.store('u32', 8, eventLayout.localPort, reg(1))
  a.load('u32', 1, 6, context.length)
  a.store('u32', 8, eventLayout.length, reg(1))
  a.store('u32', 8, eventLayout.length + 4, 0)
}
