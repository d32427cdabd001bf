/** A List in block style, as kubectl prints it, cut into its items: each has its own line, and 300 MB need not be held at once. */
import type { YamlDocument } from './split-yaml'

/** `head` is the List without its items; an item's text is a list of one. */
export type YamlList = { readonly head: YamlDocument; readonly items: readonly YamlDocument[] }

/** Undefined for a document that is not such a List. */
export function splitYamlList(document: YamlDocument): YamlList | undefined {
  const { text, line } = document
  const key = /^items:[ \t]*(?:#.*)?\r?$/m.exec(text)
  if (key === null) return undefined
  const start = key.index + key[0].length + 1
  const indent = /^ *(?=- )/.exec(text.slice(start, start + 100))?.[0].length
  if (indent === undefined) return undefined
  const { items, end } = cutItems(text, start, indent)
  const firstLine = line + countLines(text, 0, start)
  const head = { ...document, text: `${text.slice(0, key.index)}items: []\n${text.slice(end)}` }
  return { head, items: numberLines(text, items, firstLine) }
}

type Cut = { readonly items: readonly number[]; readonly end: number }

/** Where items begin; the last offset is where the last one ends. */
function cutItems(text: string, start: number, indent: number): Cut {
  const items: number[] = []
  let at = start
  while (at < text.length) {
    const depth = depthAt(text, at)
    const isItem = depth === indent && isDash(text, at + depth)
    if (isItem) items.push(at)
    else if (depth <= indent && !isEmptyAt(text, at + depth)) break
    const newline = text.indexOf('\n', at)
    at = newline < 0 ? text.length : newline + 1
  }
  return { items: [...items, at], end: at }
}

function numberLines(text: string, offsets: readonly number[], firstLine: number): readonly YamlDocument[] {
  const documents: YamlDocument[] = []
  let line = firstLine
  for (let index = 0; index + 1 < offsets.length; index++) {
    const from = offsets[index] ?? 0
    const to = offsets[index + 1] ?? text.length
    documents.push({ text: text.slice(from, to), line, contentLine: line })
    line += countLines(text, from, to)
  }
  return documents
}

function depthAt(text: string, start: number): number {
  let at = start
  while (text.charCodeAt(at) === 32) at++
  return at - start
}

function isDash(text: string, at: number): boolean {
  return text.charCodeAt(at) === 45 && ' \r\n'.includes(text.charAt(at + 1))
}

/** Blank lines and comments may stand anywhere; a tab is a mistake inside an item. */
function isEmptyAt(text: string, at: number): boolean {
  return at >= text.length || '\r\n\t#'.includes(text.charAt(at))
}

function countLines(text: string, from: number, to: number): number {
  let count = 0
  for (let at = text.indexOf('\n', from); at >= 0 && at < to; at = text.indexOf('\n', at + 1)) count++
  return count
}
