import { describe, expect, test } from 'vitest'
import { splitYaml } from './split-yaml'

const lines = (text: string): number[] => splitYaml(text).map(({ contentLine }) => contentLine)

describe('splitting YAML', () => {
  test('each document knows the line its content begins at', () => {
    expect(lines('a: 1\n---\nb: 2\n---\n\n# comment\nc: 3\n')).toEqual([1, 3, 7])
  })

  test('documents without content are left out', () => {
    expect(lines('---\n---\n# nothing\n---\na: 1\n---\n')).toEqual([5])
    expect(lines('# only a comment\n')).toEqual([])
  })

  test('content on the marker line counts', () => {
    expect(lines('--- {"a": 1}\n--- # comment\nb: 2\n')).toEqual([1, 3])
  })

  test('dashes inside a word, a table or an indented text are no marker', () => {
    const [document] = splitYaml('a: |\n  ---\n  b\n----\nc: ---x\n')
    expect(document?.text).toContain('c: ---x')
    expect(lines('a: |\n  ---\n  b\n')).toEqual([1])
  })

  test('Windows line ends do not matter', () => {
    expect(lines('a: 1\r\n---\r\nb: 2\r\n')).toEqual([1, 3])
  })

  test('a directive before the marker is no document of its own', () => {
    expect(lines('%YAML 1.2\n---\na: 1\n...\n')).toEqual([3])
  })

  test('the parts put together are the text', () => {
    const text = 'a: 1\n---\nb: 2\n--- \nc: 3'
    expect(
      splitYaml(text)
        .map((document) => document.text)
        .join(''),
    ).toBe(text)
  })
})
