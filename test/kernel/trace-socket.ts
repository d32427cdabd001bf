/** The socket on which a program hears the kernel's trace events: when it listens, and when it has heard all. */
import type { ChildProcess } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { sleep, waitUntil } from './run-command'

/** NFNLGRP_NFTRACE is group 9 of the netfilter family: bit 8 of the mask in /proc/PID/net/netlink. */
const traceGroup = 0x100
const netfilterFamily = '12'

export function waitUntilListening(child: ChildProcess): void {
  waitUntil('the monitor listens', () => socketOf(child) !== undefined)
}

type Socket = { readonly waiting: number; readonly lost: number }

/** The columns: address, family, port, groups, bytes waiting, …, events lost. */
function socketOf(child: ChildProcess): Socket | undefined {
  const table = readFileSync(`/proc/${child.pid}/net/netlink`, 'utf8')
  for (const line of table.split('\n')) {
    const [, family, , groups = '', waiting, , , , lost] = line.trim().split(/\s+/)
    if (family === netfilterFamily && (Number.parseInt(groups, 16) & traceGroup) !== 0) {
      return { waiting: Number(waiting), lost: Number(lost) }
    }
  }
  return undefined
}

/** Until the socket is empty, the program asleep and its output unchanged, three times in a row. */
export function settle(child: ChildProcess, file: string): void {
  let quiet = 0
  let size = -1
  const isQuiet = () => {
    const isAsleep = / S /.test(readFileSync(`/proc/${child.pid}/stat`, 'utf8'))
    const socket = socketOf(child)
    if (socket === undefined) throw new Error(`the monitor ended: ${readFileSync(file, 'utf8').slice(-500)}`)
    if (socket.lost > 0) throw new Error(`the kernel dropped ${socket.lost} trace events: send fewer packets at once`)
    const before = size
    size = statSync(file).size
    quiet = isAsleep && socket.waiting === 0 && size === before ? quiet + 1 : 0
    return quiet === 3
  }
  sleep(1)
  waitUntil('the monitor has read all trace events', isQuiet, 60_000)
}
