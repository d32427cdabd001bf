import { describe, expect, test } from 'vitest'
import { parseYaml } from './parse-yaml'
import { splitYaml } from './split-yaml'

function parse(text: string): ReturnType<typeof parseYaml> {
  const [document] = splitYaml(text)
  if (document === undefined) throw new Error('the text holds no document')
  return parseYaml(document)
}

describe('reading one YAML document', () => {
  test('numbers with a leading zero are octal, as kubectl reads them, and addresses stay text', () => {
    expect(parse('a: 010\nb: 0644\nc: 010.0.0.1\nd: 10\ne: 09')).toEqual({
      value: { a: 8, b: 420, c: '010.0.0.1', d: 10, e: 9 },
    })
  })

  test('merge keys are honoured, as kubectl honours them', () => {
    expect(parse('base: &b {x: 1, y: 2}\nown: {<<: *b, y: 3}')).toMatchObject({ value: { own: { x: 1, y: 3 } } })
  })

  test('words that are only sometimes truth values stay text', () => {
    expect(parse('a: yes\nb: off\nc: true')).toEqual({ value: { a: 'yes', b: 'off', c: true } })
  })

  test.each([
    ['a:\n\tb: 1\n', 2, 'a line is indented with a tab, which YAML forbids', 'replace the tab with blanks'],
    ['a:\n  b: 1\n \tc: 2\n', 3, 'a line is indented with a tab, which YAML forbids', 'replace the tab with blanks'],
    ['a: 1\na: 2\n', 2, 'a key stands twice in one map', 'delete one'],
    [`a: ${'['.repeat(200)}`, 1, 'it is nested more than 100 levels deep', 'check how the file was made'],
  ])('%j is refused at line %d: %s', (text, line, reason, hint) => {
    expect(parse(text)).toEqual({ line, reason, hint })
  })

  test('a template is told as one, with the tool that renders it', () => {
    expect(parse('metadata:\n  name: {{ .Values.name }}\n')).toMatchObject({
      reason: expect.stringContaining('it is a template, not YAML'),
      hint: 'render it first, for example with helm template',
    })
  })

  test('an alias bomb is refused without being expanded', () => {
    const layers = Array.from({ length: 30 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`).join(', ')}]`)
    expect(parse(`a0: &a0 [x]\n${layers.join('\n')}\n`)).toMatchObject({
      reason: 'it has more than 200 aliases (*name)',
    })
  })

  test('what js-yaml says of other mistakes is passed on with the line', () => {
    expect(parse('# head\na:\n  - b\n c: d\n')).toMatchObject({ line: 4, reason: 'bad indentation of a mapping entry' })
    expect(parse('a: *nowhere\n')).toMatchObject({ line: 1, reason: 'unidentified alias "nowhere"' })
  })
})
