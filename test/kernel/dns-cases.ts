/** How resolvers behave, case by case: the name, the server's replies, and what glibc 2.36 and musl 1.2.3 say and send. */
import type { Heard } from '#compile/dns/attempt'

/** The search list of namespace shop, with one domain of the node. */
export const cluster = 'search shop.svc.cluster.local svc.cluster.local cluster.local corp.example\noptions ndots:5\n'

export type Replies = Readonly<Record<string, string>>
export type Case = {
  readonly id: string
  readonly name: string
  readonly replies: Replies
  readonly conf?: string
  /** What each library says in the end, and how many questions it sent. */
  readonly glibc?: readonly [outcome: string, questions: number]
  readonly musl?: readonly [outcome: string, questions: number]
}

const there: Replies = { 'web.shop.svc.cluster.local. A': '10.96.0.20', 'web.shop.svc.cluster.local. AAAA': 'NODATA' }
const outside: Replies = { 'www.example.org. A': '192.0.2.1', 'www.example.org. AAAA': '2001:db8::1' }
const first = 'web.shop.svc.cluster.local.'
const second: Replies = { 'web.svc.cluster.local. A': '192.0.2.2', 'web.svc.cluster.local. AAAA': '2001:db8::2' }
const quick = `${cluster}options timeout:1 attempts:2\n`
const line = (length: number): string => {
  const start = 'search shop.svc.cluster.local '
  return `${start}${'d'.repeat(60)}.${'e'.repeat(60)}.${'f'.repeat(60)}.${'g'.repeat(length - start.length - 183)}\noptions ndots:5\n`
}

export const cases: readonly Case[] = [
  { id: 'L1', name: 'web', replies: there, glibc: ['found', 2], musl: ['found', 2] },
  { id: 'L2', name: 'web.shop', replies: there, glibc: ['found', 4], musl: ['found', 4] },
  { id: 'L3', name: 'www.example.org', replies: outside, glibc: ['found', 10], musl: ['found', 10] },
  { id: 'L4', name: 'www.example.org.', replies: outside, glibc: ['found', 2], musl: ['found', 2] },
  {
    id: 'L5',
    name: 'a.b.c.d.e.org',
    replies: {},
    glibc: ['Name or service not known', 10],
    musl: ['Name does not resolve', 2],
  },
  {
    id: 'L6',
    name: 'web',
    replies: { [first]: 'SERVFAIL', ...second },
    conf: quick,
    glibc: ['found', 6],
    musl: ['Try again', 12],
  },
  {
    id: 'L7',
    name: 'web',
    replies: { [first]: 'REFUSED', ...second, 'web. A': '192.0.2.3' },
    conf: quick,
    glibc: ['found', 6],
    musl: ['Try again', 4],
  },
  {
    id: 'L8',
    name: 'web',
    replies: { [first]: 'NODATA', ...second },
    glibc: ['found', 4],
    musl: ['Name does not resolve', 2],
  },
  {
    id: 'L9',
    name: 'web',
    replies: { [`${first} A`]: '10.96.0.20', ...second },
    glibc: ['found', 2],
    musl: ['found', 4],
  },
  {
    id: 'L10',
    name: 'web',
    replies: { [first]: 'SILENT', ...second, 'web. A': '192.0.2.3' },
    conf: quick,
    glibc: ['found', 6],
    musl: ['Try again', 4],
  },
  {
    id: 'L11',
    name: 'web',
    replies: { [`${first} A`]: '10.96.0.20', [`${first} AAAA`]: 'SILENT' },
    conf: quick,
    glibc: ['found', 6],
    musl: ['Try again', 3],
  },
  {
    id: 'L11 turned',
    name: 'web',
    replies: { [`${first} AAAA`]: 'NODATA', [`${first} A`]: 'SILENT', 'web. A': '192.0.2.3' },
    conf: quick,
    glibc: ['found', 6],
    musl: ['Try again', 3],
  },
  { id: 'L12 254', name: 'web', replies: there, conf: line(254), glibc: ['found', 2], musl: ['found', 2] },
  {
    id: 'L12 255',
    name: 'web',
    replies: there,
    conf: line(255),
    glibc: ['found', 2],
    musl: ['Name does not resolve', 2],
  },
  {
    id: 'L13',
    name: 'web',
    replies: there,
    conf: `search corp.example\n${cluster}`,
    glibc: ['found', 2],
    musl: ['found', 2],
  },
  {
    id: 'L14',
    name: 'web',
    replies: { 'web. A': '192.0.2.3' },
    conf: 'search .\noptions ndots:5 timeout:1\n',
    glibc: ['found', 2],
    musl: ['Try again', 0],
  },
  {
    id: 'L17',
    name: 'www.example.org',
    replies: outside,
    conf: cluster.replace('ndots:5', 'ndots:2'),
    glibc: ['found', 2],
    musl: ['found', 2],
  },
  {
    id: 'two nameservers',
    name: 'web',
    replies: there,
    conf: `nameserver 127.0.0.2\n${cluster}`,
    glibc: ['found', 2],
    musl: ['found', 4],
  },
  {
    id: 'two nameservers, SERVFAIL',
    name: 'web.',
    replies: { 'web.': 'SERVFAIL' },
    conf: `nameserver 127.0.0.2\n${quick}`,
    glibc: ['Temporary failure in name resolution', 8],
    musl: ['Try again', 16],
  },
  {
    id: 'two nameservers, silence',
    name: 'web.',
    replies: { 'web.': 'SILENT' },
    conf: `nameserver 127.0.0.2\n${quick}`,
    glibc: ['Temporary failure in name resolution', 8],
    musl: ['Try again', 8],
  },
  {
    id: 'a good A beside SERVFAIL',
    name: 'web',
    replies: { [`${first} A`]: '10.96.0.20', [`${first} AAAA`]: 'SERVFAIL' },
    conf: quick,
    glibc: ['found', 2],
    musl: ['Try again', 11],
  },
  {
    id: 'dots enough, then the list',
    name: 'web.shop',
    replies: there,
    conf: cluster.replace('ndots:5', 'ndots:1'),
    glibc: ['found', 6],
    musl: ['Name does not resolve', 2],
  },
  {
    id: 'no-aaaa',
    name: 'web',
    replies: there,
    conf: `${cluster}options no-aaaa\n`,
    glibc: ['found', 1],
    musl: ['found', 2],
  },
  {
    id: 'a name too long for the list',
    name: `${'n'.repeat(60)}.${'n'.repeat(60)}.${'n'.repeat(60)}.${'n'.repeat(50)}`,
    replies: {},
    glibc: ['Name or service not known', 2],
  },
]

/** What the scripted server says, as a resolver hears it. */
export function hear(replies: Replies): (name: string, type: string) => Heard {
  return (name, type) => {
    const reply = replies[`${name} ${type}`] ?? replies[name] ?? 'NXDOMAIN'
    const silent = { rcode: 'TIMEOUT', answers: [], isPositive: false, because: '' } as const
    if (reply === 'SILENT') return silent
    if (reply === 'SERVFAIL' || reply === 'REFUSED' || reply === 'NXDOMAIN') return { ...silent, rcode: reply }
    return { ...silent, rcode: 'NOERROR', isPositive: reply !== 'NODATA' }
  }
}
