/** The few functions of the C library that the kernel room calls; everything above knows only this interface. */
import { createRequire } from 'node:module'
import type * as Koffi from 'koffi'
import { Failure } from '#base/failure'

/** Functions return a result of zero or more, or the negative errno. Buffers live at least as long as the call. */
export type Native = {
  readonly bpf: (command: number, attributes: Buffer, size: number, step?: string) => number
  readonly mmap: (fd: number, length: number, access: 'read' | 'read-write', offset: number) => Mapping | number
  readonly setns: (fd: number) => number
  readonly mount: (source: string, target: string, type: string, options: string) => number
  readonly flock: (fd: number) => number
  readonly netlinkSocket: (groups: number) => NetlinkSocket | number
  /** The address of a buffer's first byte, for the pointers inside `attributes`. */
  readonly addressOf: (buffer: Uint8Array) => bigint
  readonly poll: (fd: number, whenReadable: () => void) => { readonly close: () => void }
  readonly pageSize: number
}

/** After `close` the memory must not be touched any more. */
export type Mapping = { readonly memory: ArrayBuffer; readonly close: () => void }

export type NetlinkSocket = {
  readonly fd: number
  /** Bytes of one datagram, 0 when none waits, or the negative errno. */
  readonly receive: (into: Buffer) => number
  readonly send: (bytes: Buffer) => number
}

const bpfNumbers: Readonly<Record<string, number>> = { x64: 321, arm64: 280, riscv64: 280, loong64: 280 }
const cloneNewNet = 0x40000000
const lockExclusiveNow = 2 | 4
const netlinkFamily = 16
const socketFlags = 3 | 0x800 | 0x80000
const eagain = 11

let loaded: Native | undefined

/** Loaded at the first need: most commands never come here. */
export function loadNative(): Native {
  loaded ??= bindNative()
  return loaded
}

function bindNative(): Native {
  const bpfNumber = bpfNumbers[process.arch]
  if (process.platform !== 'linux' || bpfNumber === undefined) {
    throw new Failure(
      'kernel.unsupported',
      `the packet datapath needs Linux on x64, arm64, riscv64 or loong64; this is ${process.platform} on ${process.arch}`,
    )
  }
  const koffi = requireKoffi()
  const libc = koffi.load(null)
  const syscall = libc.func('long syscall(long number, int command, void *attributes, uint32_t size)')
  const mmap = libc.func('void *mmap(void *near, size_t length, int access, int flags, int fd, long offset)')
  const munmap = libc.func('int munmap(void *at, size_t length)')
  const setns = libc.func('int setns(int fd, int kind)')
  const mount = libc.func(
    'int mount(const char *source, const char *target, const char *type, unsigned long flags, const char *options)',
  )
  const flock = libc.func('int flock(int fd, int operation)')
  const sysconf = libc.func('long sysconf(int name)')
  // errno must be read by the very next statement: any other call may overwrite it.
  const orErrno = (result: number): number => (result < 0 ? -koffi.errno() : result)

  return {
    bpf: (command, attributes, size) => orErrno(Number(syscall(bpfNumber, command, attributes, size))),
    mmap(fd, length, access, offset) {
      const at: unknown = mmap(null, length, access === 'read' ? 1 : 3, 1, fd, offset)
      // MAP_FAILED is all ones, not null.
      if (koffi.address(at) === 0xffffffffffffffffn) return -koffi.errno()
      return { memory: koffi.view(at, length), close: () => void munmap(at, length) }
    },
    setns: (fd) => orErrno(Number(setns(fd, cloneNewNet))),
    mount: (source, target, type, options) => orErrno(Number(mount(source, target, type, 0, options))),
    flock: (fd) => orErrno(Number(flock(fd, lockExclusiveNow))),
    netlinkSocket: (groups) => openNetlink(koffi, libc, groups),
    addressOf: (buffer) => koffi.address(buffer),
    poll(fd, whenReadable) {
      const watcher = koffi.node.poll(fd, { readable: true }, whenReadable)
      watcher.unref()
      return { close: () => watcher.close() }
    },
    pageSize: Number(sysconf(30)),
  }
}

function openNetlink(koffi: typeof Koffi, libc: Koffi.LibraryHandle, groups: number): NetlinkSocket | number {
  const socket = libc.func('int socket(int domain, int kind, int protocol)')
  const bind = libc.func('int bind(int fd, void *address, uint32_t length)')
  const receive = libc.func('long recv(int fd, void *into, size_t length, int flags)')
  const send = libc.func('long send(int fd, void *bytes, size_t length, int flags)')
  const fd = Number(socket(netlinkFamily, socketFlags, 0))
  if (fd < 0) return -koffi.errno()
  const address = Buffer.alloc(12)
  address.writeUInt16LE(netlinkFamily, 0)
  address.writeUInt32LE(groups, 8)
  if (Number(bind(fd, address, address.length)) < 0) return -koffi.errno()
  return {
    fd,
    receive(into) {
      const length = Number(receive(fd, into, into.length, 0))
      const errno = length < 0 ? koffi.errno() : 0
      return errno === eagain ? 0 : errno > 0 ? -errno : length
    },
    send(bytes) {
      const length = Number(send(fd, bytes, bytes.length, 0))
      return length < 0 ? -koffi.errno() : length
    },
  }
}

function requireKoffi(): typeof Koffi {
  try {
    return createRequire(import.meta.url)('koffi') as typeof Koffi
  } catch (cause) {
    throw new Failure(
      'kernel.unsupported',
      'koffi, which calls the kernel, could not be loaded; install Portolan with its optional packages (npm ci without --omit=optional)',
      cause,
    )
  }
}
