/** The kernel as a decider of one policy: the datapath's own program, run on test packets, with tables of its own. */

import { invariant } from '#base/invariant'
import { buildSnapshot } from '#compile/traffic-policy/build-snapshot'
import type { CompiledPolicy } from '#compile/traffic-policy/compile-policy'
import {
  boundRow,
  configLayout,
  type DatapathMap,
  datapathMaps,
  interfaceLayout,
  modeNumbers,
  snapshotShape,
} from '#compile/traffic-policy/datapath-maps'
import { pathClasses } from '#compile/traffic-policy/entry'
import type { Decision, PolicyPacket } from '#compile/traffic-policy/policy-packet'
import { printFrame } from '#compile/traffic-policy/print-frame'
import { printSnapshot } from '#compile/traffic-policy/print-snapshot'
import { datapathProgram } from '#compile/traffic-policy/program-datapath'
import { context } from '#compile/traffic-policy/program-frame'
import { reasonOf } from '#compile/traffic-policy/reasons'
import { type Bpf, openBpf } from './bpf-sys'
import { type BpfMap, closeMap, createMap, nextKey, numberKey, remove, update } from './maps'
import { closeProgram, loadProgram, testRun } from './programs'

export type PolicyDecider = {
  /** Undefined for a packet that the question's few fields do not make. */
  readonly decide: (packet: PolicyPacket) => Decision | undefined
  readonly close: () => void
}

const slot = 1
const token = 1n
const direction = 'ingress'
const markShift = 8
const sizes = { slots: 2, counterRows: 64, connections: 1024, prefixes: 1, events: 4096 }

/** Nothing is pinned, and no interface is touched: all of it is gone when it is closed. */
export function openPolicyDecider(compiled: CompiledPolicy): PolicyDecider {
  const bpf = openBpf()
  const opened: BpfMap[] = []
  const close = (): void => {
    for (const map of opened.splice(0)) closeMap(map)
  }
  try {
    return openWith(bpf, compiled, { opened, close })
  } catch (error) {
    close()
    throw error
  }
}

type Opened = { readonly opened: BpfMap[]; readonly close: () => void }

function openWith(bpf: Bpf, compiled: CompiledPolicy, { opened, close }: Opened): PolicyDecider {
  const make = (...of: Parameters<typeof createMap>): BpfMap => {
    const map = createMap(...of)
    opened.push(map)
    return map
  }
  const snapshot = make(bpf, snapshotShape())
  const tables = new Map(
    Object.entries(datapathMaps(sizes)).map(([name, shape]) => [
      name,
      make(bpf, shape, name === 'bound' ? snapshot : undefined),
    ]),
  )
  const tableOf = (name: string): BpfMap => {
    const table = tables.get(name)
    invariant(table !== undefined, `the datapath has a table ${name}`)
    return table
  }
  fill(bpf, tableOf)
  const counterRows = compiled.rules.map((_, index) => index)
  const bytes = printSnapshot(buildSnapshot(compiled, { token, direction, binding: 1, publication: 1, counterRows }))
  update(bpf, snapshot, numberKey(0), bytes)
  update(bpf, tableOf('bound'), numberKey(boundRow(slot, direction)), numberKey(snapshot.fd))
  const program = datapathProgram({ direction, linkLayer: 'ethernet', ticksPerSecond: 250, readsDirectly: true })
  const loaded = loadProgram(bpf, 'tp_explain', program, (name) => tableOf(name).fd)
  return {
    decide(packet) {
      const frame = printFrame(packet)
      if (frame === undefined) return undefined
      const answer = testRun(bpf, loaded.fd, { packet: frame, context: contextOf(packet) })
      for (const table of ['connections4', 'connections6']) forget(bpf, tableOf(table))
      return decisionOf(answer.context.readUInt32LE(context.decision))
    },
    close() {
      closeProgram(loaded)
      close()
    },
  }
}

function fill(bpf: Bpf, tableOf: (name: DatapathMap) => BpfMap): void {
  const config = Buffer.alloc(configLayout.size)
  config.writeUInt32LE(modeNumbers.enforce, configLayout.mode)
  config.writeUInt32LE(7 << markShift, configLayout.markMask)
  config.writeUInt32LE(markShift, configLayout.markShift)
  update(bpf, tableOf('config'), numberKey(0), config)
  const row = Buffer.alloc(interfaceLayout.size)
  row.writeBigUInt64LE(token, interfaceLayout.token)
  update(bpf, tableOf('interfaces'), numberKey(slot), row)
}

function contextOf({ path }: PolicyPacket): Uint8Array {
  const given = Buffer.alloc(192)
  given.writeUInt32LE(pathClasses.indexOf(path) << markShift, context.mark)
  given.writeUInt32LE(slot, context.slot)
  return given
}

/** The next packet is no packet of this one's connection. */
function forget(bpf: Bpf, connections: BpfMap): void {
  for (let key = nextKey(bpf, connections); key !== undefined; key = nextKey(bpf, connections))
    remove(bpf, connections, key)
}

function decisionOf(number: number): Decision {
  const reason = reasonOf((number >> 8) & 0xff)
  invariant(reason !== undefined, `the datapath decided for a reason that is known: ${number}`)
  const verdict = (number & 0xff) === 0 ? 'allow' : 'deny'
  return { verdict, reason, ...(reason === 'rule' && { rule: (number >> 16) & 0xff }) }
}
