/** rtnetlink: the interfaces of the calling thread's network namespace, and word of those that come and go. */
import { closeSync } from 'node:fs'
import { kernelFailure } from './bpf-sys'
import type { Native } from './native'

export type NetworkInterface = {
  readonly index: number
  readonly name: string
  /** Ethernet frames, bare IP packets, or what policy cannot read. */
  readonly linkLayer: 'ethernet' | 'ip' | 'other'
  /** Of the kernel's `ARPHRD_` constants. */
  readonly hardwareType: number
  readonly isUp: boolean
}

export type LinkEvent =
  | { readonly kind: 'there' | 'gone'; readonly link: NetworkInterface }
  /** A filter or a queueing discipline was taken off it. */
  | { readonly kind: 'unhooked'; readonly index: number }
  | { readonly kind: 'lost' }

const newLink = 16
const deleteLink = 17
const getLink = 18
const done = 3
const deleteQdisc = 37
const deleteFilter = 45
/** RTMGRP_LINK and RTMGRP_TC. */
const watchedGroups = 1 | 8
const nameAttribute = 3
/** ARPHRD_ETHER and ARPHRD_LOOPBACK: a loopback device carries Ethernet headers too. */
const withEthernetHeader = [1, 772]
/** ARPHRD_PPP, RAWIP, TUNNEL, TUNNEL6, SIT, IPGRE, IP6GRE and NONE, which tun, WireGuard and netkit have. */
const withoutHeader = [512, 519, 768, 769, 776, 778, 823, 65534]
const enobufs = 105

export function listInterfaces(native: Native): readonly NetworkInterface[] {
  const socket = openSocket(native, 0)
  try {
    socket.send(dumpRequest())
    const found: NetworkInterface[] = []
    const buffer = Buffer.alloc(1 << 16)
    const end = Date.now() + 5000
    while (Date.now() < end) {
      const length = socket.receive(buffer)
      if (length < 0) throw kernelFailure(-length, 'listing the network interfaces')
      for (const message of messagesOf(buffer.subarray(0, length))) {
        if (message.type === done) return found
        if (message.type === newLink) found.push(parseLink(message.body))
      }
    }
    return found
  } finally {
    closeSync(socket.fd)
  }
}

/** Calls `take` for each change from now on. After `lost` the caller lists the interfaces anew. */
export function watchLinks(native: Native, take: (event: LinkEvent) => void): { readonly close: () => void } {
  const socket = openSocket(native, watchedGroups)
  const buffer = Buffer.alloc(1 << 16)
  const poll = native.poll(socket.fd, () => {
    for (;;) {
      const length = socket.receive(buffer)
      if (length === 0) return
      if (length === -enobufs) take({ kind: 'lost' })
      else if (length < 0) return
      for (const { type, body } of messagesOf(buffer.subarray(0, Math.max(0, length)))) {
        if (type === newLink) take({ kind: 'there', link: parseLink(body) })
        if (type === deleteLink) take({ kind: 'gone', link: parseLink(body) })
        // The index stands behind the family in the header of both.
        if (type === deleteQdisc || type === deleteFilter) take({ kind: 'unhooked', index: body.readInt32LE(4) })
      }
    }
  })
  return {
    close() {
      poll.close()
      closeSync(socket.fd)
    },
  }
}

function openSocket(native: Native, groups: number) {
  const socket = native.netlinkSocket(groups)
  if (typeof socket === 'number') throw kernelFailure(-socket, 'opening a socket for network interfaces')
  return socket
}

function dumpRequest(): Buffer {
  const request = Buffer.alloc(32)
  request.writeUInt32LE(32, 0)
  request.writeUInt16LE(getLink, 4)
  // A request, for all of them.
  request.writeUInt16LE(0x301, 6)
  return request
}

function* messagesOf(bytes: Buffer): Generator<{ readonly type: number; readonly body: Buffer }> {
  for (let at = 0; at + 16 <= bytes.length; ) {
    const length = bytes.readUInt32LE(at)
    if (length < 16) return
    yield { type: bytes.readUInt16LE(at + 4), body: bytes.subarray(at + 16, at + length) }
    at += (length + 3) & ~3
  }
}

function parseLink(body: Buffer): NetworkInterface {
  let name = ''
  for (let at = 16; at + 4 <= body.length; ) {
    const length = body.readUInt16LE(at)
    if (length < 4) break
    if (body.readUInt16LE(at + 2) === nameAttribute) {
      name = body.toString('utf8', at + 4, at + length).replace(/\0.*$/s, '')
    }
    at += (length + 3) & ~3
  }
  const hardwareType = body.readUInt16LE(2)
  return {
    index: body.readInt32LE(4),
    name,
    linkLayer: linkLayerOf(hardwareType),
    hardwareType,
    isUp: (body.readUInt32LE(8) & 1) !== 0,
  }
}

export function linkLayerOf(hardwareType: number): NetworkInterface['linkLayer'] {
  if (withEthernetHeader.includes(hardwareType)) return 'ethernet'
  return withoutHeader.includes(hardwareType) ? 'ip' : 'other'
}
