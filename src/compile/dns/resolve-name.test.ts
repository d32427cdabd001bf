import { describe, expect, test } from 'vitest'
import { type Case, cases, cluster, hear } from '../../../test/kernel/dns-cases'
import { countQueries } from './attempt'
import { resolveName } from './resolve-name'
import { type Libc, readResolverSettings } from './resolver-settings'

function resolve(libc: Libc, { name, replies, conf = cluster }: Case) {
  const settings = readResolverSettings(`nameserver 127.0.0.1\n${conf}`, libc)
  return resolveName({ name, types: ['A', 'AAAA'] }, settings, hear(replies))
}

describe('a name costs as many questions as the C library really sends', () => {
  const stated = cases.flatMap((one) =>
    (['glibc', 'musl'] as const).flatMap((libc) =>
      one[libc] === undefined ? [] : [[`${one.id} ${libc}`, libc, one] as const],
    ),
  )

  test.each(stated)('%s', (_, libc, one) => {
    const { attempts, end } = resolve(libc, one)
    const [outcome, questions] = one[libc] ?? []
    expect([end === 'found', countQueries(attempts)]).toEqual([outcome === 'found', questions])
  })
})

describe('the order of names', () => {
  const namesOf = (libc: Libc, name: string, conf?: string): readonly string[] => {
    const one = { id: '', name, replies: {}, ...(conf !== undefined && { conf }) }
    return [...new Set(resolve(libc, one).attempts.map((attempt) => attempt.name))]
  }
  const expanded = (name: string) =>
    ['shop.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.', 'corp.example.'].map(
      (domain) => `${name}.${domain}`,
    )

  test('L2: too few dots, so the search list first and the name itself last', () => {
    expect(namesOf('glibc', 'web.shop')).toEqual([...expanded('web.shop'), 'web.shop.'])
    expect(namesOf('musl', 'web.shop')).toEqual([...expanded('web.shop'), 'web.shop.'])
  })

  test('L5: with enough dots glibc tries the name and then the list, musl the name alone', () => {
    expect(namesOf('glibc', 'a.b.c.d.e.org')).toEqual(['a.b.c.d.e.org.', ...expanded('a.b.c.d.e.org')])
    expect(namesOf('musl', 'a.b.c.d.e.org')).toEqual(['a.b.c.d.e.org.'])
  })

  test('L4: a closing dot leaves nothing to search', () => {
    expect(namesOf('glibc', 'web.')).toEqual(['web.'])
    expect(namesOf('musl', 'web.')).toEqual(['web.'])
  })

  test('L14: a root in the search list stands for the name itself, which is then not asked again', () => {
    expect(namesOf('glibc', 'web', 'search corp.example . other.example\noptions ndots:5\n')).toEqual([
      'web.corp.example.',
      'web.',
      'web.other.example.',
    ])
  })

  test('other types than addresses are searched for by glibc alone', () => {
    const settings = (libc: Libc) => readResolverSettings(cluster, libc)
    const ask = hear({})
    expect(resolveName({ name: 'db', types: ['SRV'] }, settings('glibc'), ask).attempts).toHaveLength(5)
    expect(resolveName({ name: 'db', types: ['SRV'] }, settings('musl'), ask).attempts).toHaveLength(1)
  })
})

describe('what the libraries read', () => {
  test('L13: the last search line counts, options add up', () => {
    const text = 'search a.example b.example\nsearch c.example\noptions ndots:3 timeout:2\noptions attempts:4 ndots:2\n'
    for (const libc of ['glibc', 'musl'] as const) {
      expect(readResolverSettings(text, libc)).toMatchObject({
        search: ['c.example'],
        ndots: 2,
        timeoutSeconds: 2,
        attempts: 4,
      })
    }
  })

  test('values have limits, and a file without nameserver means this machine', () => {
    const text = 'options ndots:99 timeout:99 attempts:99\n'
    expect(readResolverSettings(text, 'glibc')).toMatchObject({
      ndots: 15,
      timeoutSeconds: 30,
      attempts: 5,
      nameservers: ['127.0.0.1'],
    })
    expect(readResolverSettings(text, 'musl')).toMatchObject({ ndots: 15, timeoutSeconds: 60, attempts: 10 })
  })

  test('comments, unknown words, bad addresses and a fourth nameserver are passed over', () => {
    const text =
      '# nameserver 9.9.9.9\n; x\nnameserver nonsense\nnameserver 10.0.0.1\nnameserver ::1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\nsortlist x\n'
    expect(readResolverSettings(text, 'glibc').nameservers).toEqual(['10.0.0.1', '::1', '10.0.0.2'])
  })

  test('L12: musl ignores a search line of 255 characters and says nothing', () => {
    const line = (length: number): string => `search ${'d'.repeat(length - 7)}`
    expect(readResolverSettings(`${line(254)}\n`, 'musl')).toMatchObject({ isSearchIgnored: false })
    expect(readResolverSettings(`${line(255)}\n`, 'musl')).toMatchObject({ search: [], isSearchIgnored: true })
    expect(readResolverSettings(`${line(255)}\n`, 'glibc').search).toHaveLength(1)
  })
})
