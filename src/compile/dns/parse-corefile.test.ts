import { describe, expect, test } from 'vitest'
import { parseCorefile } from './parse-corefile'

const parse = (text: string, files: Readonly<Record<string, string>> = {}) =>
  parseCorefile(text, { file: 'corefile.yaml' }, (path) => (files[path] === undefined ? undefined : [files[path]]))
const shapeOf = (text: string, files?: Readonly<Record<string, string>>) =>
  parse(text, files).value.blocks.map(({ zones, port, directives }) => [
    zones,
    port,
    directives.map(({ name, args }) => [name, ...args].join(' ')),
  ])

describe('server blocks', () => {
  test('zones, ports and transports come from the keys', () => {
    expect(shapeOf('.:53 {\n errors\n}\ncorp.example lab.example:1053 {\n forward . 10.0.0.1\n}\n')).toEqual([
      [['.'], 53, ['errors']],
      [['corp.example.'], 53, ['forward . 10.0.0.1']],
      [['lab.example.'], 1053, ['forward . 10.0.0.1']],
    ])
    expect(
      parse('tls://example.org {\n}\ndns://.:5353 {\n}\n').value.blocks.map(({ transport, port }) => [transport, port]),
    ).toEqual([
      ['tls', 853],
      ['dns', 5353],
    ])
  })

  test('a range stands for its reverse zones', () => {
    expect(parse('10.96.0.0/12 {\n}\n').value.blocks[0]?.zones).toHaveLength(16)
    expect(parse('10.244.0.0/16 {\n}\n').value.blocks[0]?.zones).toEqual(['244.10.in-addr.arpa.'])
    expect(parse('fd00::/8 {\n}\n').value.blocks[0]?.zones).toEqual(['d.f.ip6.arpa.'])
  })

  test('keys may stand on several lines behind commas, and a single block may lack its braces', () => {
    expect(shapeOf('a.example,\nb.example {\n log\n}\n')).toEqual([[['a.example.', 'b.example.'], 53, ['log']]])
    expect(shapeOf('example.org\nlog\nforward . 9.9.9.9\n')).toEqual([
      [['example.org.'], 53, ['log', 'forward . 9.9.9.9']],
    ])
  })
})

describe('words', () => {
  test('quotes keep blanks and braces, comments end the line', () => {
    const [block] = parse('. { # the root\n template IN A {\n  answer "{{ .Name }} 60 IN A 192.0.2.1" # one\n }\n}\n')
      .value.blocks
    expect(block?.directives[0]?.block[0]).toMatchObject({
      name: 'answer',
      args: ['{{ .Name }} 60 IN A 192.0.2.1'],
      line: 3,
    })
  })

  test('a quote may run over lines, and its backslashes stay', () => {
    const [block] = parse('. {\n rewrite name regex "a\\.b\\"c" d\n log "x\ny"\n errors\n}\n').value.blocks
    expect(block?.directives.map(({ args, line }) => [args, line])).toEqual([
      [['name', 'regex', 'a\\.b"c', 'd'], 2],
      [['x\ny'], 3],
      [[], 5],
    ])
  })
})

describe('imports', () => {
  test('a snippet’s lines stand where it is imported', () => {
    expect(shapeOf('(usual) {\n errors\n cache 30\n}\n. {\n import usual\n log\n}\n')).toEqual([
      [['.'], 53, ['errors', 'cache 30', 'log']],
    ])
  })

  test('files bring lines into a block, and blocks beside it', () => {
    const files = {
      'custom/a.override': 'log\nhosts {\n 192.0.2.1 a.example\n}\n',
      'custom/b.server': 'lab.example {\n errors\n}\n',
    }
    expect(shapeOf('. {\n import custom/a.override\n}\nimport custom/b.server\n', files)).toEqual([
      [['.'], 53, ['log', 'hosts']],
      [['lab.example.'], 53, ['errors']],
    ])
  })

  test('what the input does not hold is empty, and told with its line', () => {
    const { value, findings } = parse('. {\n import gone/*\n log\n}\n')
    expect(value.blocks[0]?.directives.map(({ name }) => name)).toEqual(['log'])
    expect(findings).toMatchObject([{ code: 'dns.import-missing', origin: { index: 'data.Corefile line 2' } }])
  })

  test('an import of itself ends', () => {
    expect(parse('import a\n', { a: 'import a\nimport a\n' }).value.blocks).toEqual([])
    expect(shapeOf(`(a) {\n${'import a\n'.repeat(30)}}\n. {\n import a\n}\n`)).toEqual([[['.'], 53, []]])
  })
})

describe('mistakes', () => {
  test.each(['. {\n errors\n', '. {\n forward . 9.9.9.9 {\n}\n', '}\n'])(
    '%j is a Corefile that CoreDNS refuses',
    (text) => {
      expect(parse(text).findings.map(({ code }) => code)).toContain('dns.corefile-broken')
    },
  )

  test.each(['{$UPSTREAM}', '{%UPSTREAM%}', '{$UPSTREAM:192.0.2.53}'])(
    '%s is a variable of the environment',
    (text) => {
      expect(parse(`. {\n forward . ${text}\n}\n`).findings).toMatchObject([{ code: 'dns.environment-unknown' }])
    },
  )

  test('nothing makes it throw', () => {
    for (const text of [
      '',
      '{',
      '}',
      '"',
      '. {',
      '(a)',
      '(a) {',
      'import',
      ',,, {',
      '{ { { }',
      '. {\n{\n}\n}',
      '\u0000',
      'a\n{\n}\n',
    ]) {
      expect(() => parse(text), JSON.stringify(text)).not.toThrow()
    }
  })
})
