import { Packet } from 'dns2'
import { describe, expect, test } from 'vitest'
import { emptyReply, type Question, type Reply } from '#compile/dns/record'
import { type Answering, answerMessage } from './answer-message'

const sender = { address: '10.244.1.9', transport: 'udp' } as const

/** As many addresses as the first label says. */
function addresses({ name }: Question): Reply {
  const count = Number(name.split('.')[0])
  const answers = Array.from(
    { length: count },
    (_, index) => ({ type: 'A', name, ttl: 5, address: `10.0.${index >> 8}.${index & 255}` }) as const,
  )
  return { ...emptyReply('NOERROR', 'test', ''), answers, isAuthoritative: true }
}

const answering: Answering = { answer: addresses, takesOtherClasses: false }

type Asked = {
  readonly name?: string
  readonly type?: number
  readonly class?: number
  readonly edns?: Buffer
  readonly header?: object
}

function query({
  name = '3.shop.svc.cluster.local',
  type = 1,
  class: group = 1,
  edns,
  header = {},
}: Asked = {}): Buffer {
  const packet = new Packet()
  packet.header = new Packet.Header({ id: 4711, rd: 1, ...header })
  packet.questions.push(new Packet.Question(name, type, group))
  const bytes = packet.toBuffer()
  if (edns === undefined) return bytes
  bytes.writeUInt16BE(1, 10)
  return Buffer.concat([bytes, edns])
}

/** OPT: root, type 41, payload size, extended code, version, flags, no options. */
function opt(size: number, version = 0): Buffer {
  return Buffer.from([0, 0, 41, size >> 8, size & 255, 0, version, 0x80, 0, 0, 0])
}

function reply(message: Buffer, transport: 'udp' | 'tcp' = 'udp', by: Partial<Answering> = {}) {
  const bytes = answerMessage(message, { ...sender, transport }, { ...answering, ...by })
  if (bytes === undefined) throw new Error('no reply')
  const { header, answers, questions, additionals } = Packet.parse(bytes)
  return { bytes, header, answers, questions, additionals }
}

describe('a question', () => {
  test('comes back with its id, its flags, its own spelling, and the records', () => {
    const { header, answers, questions } = reply(query({ name: '2.Shop.SVC.cluster.local' }))
    expect(header).toMatchObject({ id: 4711, qr: 1, aa: 1, rd: 1, ra: 0, tc: 0, rcode: 0 })
    expect(questions).toMatchObject([{ name: '2.Shop.SVC.cluster.local', type: 1, class: 1 }])
    expect(answers.map(({ address }) => address)).toEqual(['10.0.0.0', '10.0.0.1'])
  })

  test('is told to whoever takes notes, with the sender as the client', () => {
    const seen: unknown[] = []
    const answer = (question: Question): Reply => {
      seen.push(question)
      return addresses(question)
    }
    reply(query({ type: 65 }), 'udp', { answer, note: ({ from, type }) => seen.push([from, type]) })
    expect(seen).toEqual([
      { name: '3.shop.svc.cluster.local.', type: 'HTTPS', client: { address: '10.244.1.9' } },
      ['10.244.1.9', 'HTTPS'],
    ])
  })

  test('every type of record is written as it is read', () => {
    const name = 'x.cluster.local.'
    const soa = { nameserver: 'ns.x.', mailbox: 'm.x.', serial: 1, refresh: 2, retry: 3, expire: 4, minimum: 5 }
    const answers: Reply['answers'] = [
      { type: 'AAAA', name, ttl: 5, address: 'fd00::9' },
      { type: 'CNAME', name, ttl: 5, target: 'y.cluster.local.' },
      { type: 'PTR', name, ttl: 5, target: 'z.cluster.local.' },
      { type: 'NS', name, ttl: 5, target: 'ns.cluster.local.' },
      { type: 'SRV', name, ttl: 5, priority: 0, weight: 50, port: 5432, target: 'db-0.cluster.local.' },
      { type: 'TXT', name, ttl: 5, text: 'a'.repeat(300) },
      { type: 'SOA', name, ttl: 5, ...soa },
    ]
    const back = reply(query(), 'tcp', { answer: () => ({ ...emptyReply('NOERROR', 'test', ''), answers }) }).answers
    expect(back.map(({ type }) => type)).toEqual([28, 5, 12, 2, 33, 16, 6])
    expect(back[0]).toMatchObject({ name: 'x.cluster.local', ttl: 5, class: 1, address: 'fd00::9' })
    expect(back[4]).toMatchObject({ priority: 0, weight: 50, port: 5432, target: 'db-0.cluster.local' })
    expect(back[6]).toMatchObject({ primary: 'ns.x', admin: 'm.x', serial: 1, minimum: 5 })
  })
})

describe('long replies', () => {
  test('over UDP as many records as fit into 512 bytes, and the flag that there are more', () => {
    const { bytes, header, answers } = reply(query({ name: '100.shop.svc.cluster.local' }))
    expect(bytes.length).toBeLessThanOrEqual(512)
    expect([header.tc, header.ancount, answers.length]).toEqual([1, 29, 29])
  })

  test('over UDP with EDNS as many as the asker can take, over TCP all', () => {
    const edns = opt(1232)
    const { bytes, header, additionals } = reply(query({ name: '100.shop.svc.cluster.local', edns }))
    expect(bytes.length).toBeLessThanOrEqual(1232)
    expect([header.tc, header.ancount, additionals.length]).toEqual([1, 73, 1])
    expect(reply(query({ name: '100.shop.svc.cluster.local' }), 'tcp').answers).toHaveLength(100)
  })

  test('never more than a message can hold', () => {
    const { bytes, header } = reply(query({ name: '9000.shop.svc.cluster.local' }), 'tcp')
    expect(bytes.length).toBeLessThanOrEqual(65535)
    expect(header.tc).toBe(1)
  })
})

describe('what CoreDNS refuses', () => {
  test('another class, unless a plugin lets it in', () => {
    expect(reply(query({ class: 3 })).header).toMatchObject({ rcode: 5, ancount: 0 })
    expect(reply(query({ class: 3 }), 'udp', { takesOtherClasses: true }).answers).toHaveLength(3)
  })

  test('another version of EDNS, with the code in two places', () => {
    const { bytes, header } = reply(query({ edns: opt(4096, 1) }))
    expect([header.ancount, header.arcount, bytes[bytes.length - 6]]).toEqual([0, 1, 1])
  })

  test('other operations, two questions, and records where none belong', () => {
    expect(reply(query({ header: { opcode: 5 } })).header).toMatchObject({ rcode: 4, opcode: 5 })
    const two = query()
    two.writeUInt16BE(2, 4)
    const none = query()
    none.writeUInt16BE(0, 4)
    const many = query()
    many.writeUInt16BE(3, 10)
    for (const message of [two, none, many])
      expect(reply(message).header).toMatchObject({ id: 4711, qr: 1, rcode: 1, qdcount: 0 })
  })

  test('a bug in answering is SERVFAIL', () => {
    const answer = (): Reply => {
      throw new Error('a bug')
    }
    expect(reply(query(), 'udp', { answer }).header.rcode).toBe(2)
  })
})

describe('what gets no reply', () => {
  const silent = (message: Buffer): void => expect(answerMessage(message, sender, answering)).toBeUndefined()

  test('less than a header, a reply, and a name with a dot inside a label', () => {
    for (let length = 0; length < 12; length++) silent(query().subarray(0, length))
    silent(query({ header: { qr: 1 } }))
    const dotted = query({ name: 'web-shop.svc.cluster.local' })
    dotted[12 + 4] = 0x2e
    silent(dotted)
  })
})

describe('any bytes at all', () => {
  test('a message cut anywhere, or with any byte changed, is answered or dropped', () => {
    const whole = query({ edns: opt(1232) })
    for (let length = 12; length < whole.length; length++) {
      const bytes = answerMessage(whole.subarray(0, length), sender, answering)
      expect(bytes === undefined || (bytes[3] ?? 0) % 16 === 1, String(length)).toBe(true)
    }
    for (let at = 0; at < whole.length; at++) {
      for (const value of [0, 1, 63, 64, 128, 192, 255]) {
        const changed = Buffer.from(whole)
        changed[at] = value
        expect(() => answerMessage(changed, sender, answering)).not.toThrow()
      }
    }
  })

  test('names that point at themselves, backwards, forwards and beyond the end', () => {
    for (const pointer of [0xc00c, 0xc000, 0xc0ff, 0xffff, 0xc010]) {
      const message = Buffer.alloc(18)
      message.writeUInt16BE(1, 4)
      message.writeUInt16BE(pointer, 12)
      message.writeUInt16BE(1, 14)
      message.writeUInt16BE(1, 16)
      expect(() => answerMessage(message, sender, answering), pointer.toString(16)).not.toThrow()
    }
  })

  test('random bytes behind a header that promises one question', () => {
    let state = 1
    const next = (): number => {
      state = (state * 1103515245 + 12345) % 2147483648
      return state & 255
    }
    for (let round = 0; round < 3000; round++) {
      const message = Buffer.from(Array.from({ length: 12 + (next() % 60) }, next))
      message.writeUInt16BE(0x0100, 2)
      message.writeUInt16BE(1, 4)
      message.writeUInt32BE(0, 6)
      message.writeUInt16BE(next() % 3, 10)
      expect(() => answerMessage(message, sender, answering)).not.toThrow()
    }
  })
})
