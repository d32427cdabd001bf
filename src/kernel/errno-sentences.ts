/** What the kernel means by an errno of bpf(2) and its neighbours, with the remedy. */
import { constants } from 'node:os'

const names = new Map(Object.entries(constants.errno).map(([name, number]) => [number, name]))

export function errnoName(errno: number): string {
  return names.get(errno) ?? `errno ${errno}`
}

export function explainErrno(name: string): string {
  return sentences[name] ?? 'the kernel gave no further reason'
}

const sentences: Readonly<Record<string, string>> = {
  EPERM:
    'it is not permitted; run with the capabilities BPF, NET_ADMIN and PERFMON (SYS_ADMIN to mount), on a bpffs, with names that hold no dots; before Linux 5.11 raise RLIMIT_MEMLOCK as well',
  EACCES: 'the verifier or the mount refused it; a bpffs mounted read-only must be mounted read-write',
  EINVAL:
    'the kernel does not know this form of it; it may be too old (TCX needs Linux 6.6), or two maps differ in size',
  ENOMEM: "there is not enough memory; raise the agent's memory limit or lower the sizes of its tables",
  E2BIG: 'the table is full or the index is beyond its end; raise its size or free rows',
  ENOSPC: 'there is no room; raise the size of the table or of the verifier log',
  ENOENT: 'it is not there; it was removed, or never made',
  ENODEV: 'there is no such interface; it was removed, or is in another network namespace',
  EEXIST: 'it is there already; another writer made it first, or a file of this name is left over',
  EBUSY: 'something else holds it; stop the other writer',
  EAGAIN: 'another process holds the lock; only one agent may write to a bpffs folder, so stop the other one',
  EMFILE:
    'this process has as many files open as it may; raise its limit (LimitNOFILE, ulimit -n): an agent holds four for each interface',
  ENFILE: 'this machine has as many files open as it may; raise fs.file-max',
  EBADF: 'the descriptor is closed or of another kind; this is a bug in Portolan',
  EFAULT: 'an address was wrong; this is a bug in Portolan',
  EROFS: 'the file system is read-only; mount the bpffs read-write',
  ENOTSUP: 'this kernel was built without it; enable it or use a newer kernel',
  EOPNOTSUPP: 'this kernel was built without it; enable it or use a newer kernel',
  ENOSYS: 'this kernel has no such call; use Linux 6.1 or later with CONFIG_BPF_SYSCALL',
  ENOTTY: 'the file is not on a bpffs; mount one there',
  ESTALE: 'it was replaced meanwhile; read it again and retry',
  ENOBUFS: 'messages were lost; read the whole state again',
}
