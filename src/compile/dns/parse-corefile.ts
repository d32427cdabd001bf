/** Corefile text as data: snippets and imports put in their place, zones and ports of each server block told apart. */
import type { Finding, Origin, Parsed } from '#base/finding'
import type { Corefile, Directive, ServerBlock } from './corefile'
import { zonesOfOrigin } from './domain-name'
import { corefileFinding } from './findings'
import { type Token, tokenizeCorefile } from './tokenize-corefile'

/** The texts that an import's path or pattern names; undefined when the input does not hold them. */
export type ReadImport = (pattern: string) => readonly string[] | undefined

type Reading = {
  readonly findings: Finding[]
  readonly origin: Origin
  readonly readImport: ReadImport
  readonly snippets: Map<string, readonly Token[]>
  /** How many imports stand in one another. */
  readonly depth: number
  /** How many imports are still followed in all: those that stand in themselves multiply. */
  readonly budget: { left: number }
}

export function parseCorefile(
  text: string,
  origin: Origin,
  readImport: ReadImport = () => undefined,
): Parsed<Corefile> {
  const reading: Reading = { findings: [], origin, readImport, snippets: new Map(), depth: 0, budget: { left: 1000 } }
  const blocks = parseBlocks(tokenizeCorefile(text), reading)
  reportEnvironment(text, reading)
  return { value: { blocks }, findings: reading.findings }
}

function parseBlocks(tokens: readonly Token[], reading: Reading): readonly ServerBlock[] {
  const blocks: ServerBlock[] = []
  let at = 0
  while (at < tokens.length) {
    const first = tokens[at]
    if (first === undefined) break
    if (first.text === 'import' && !first.isQuoted) {
      const path = tokens[at + 1]?.text ?? ''
      blocks.push(...parseBlocks(importTokens(path, first.line, reading), deeper(reading)))
      at += 2
      continue
    }
    const open = keysEnd(tokens, at)
    const hasBrace = tokens[open]?.text === '{'
    const end = hasBrace ? matchingBrace(tokens, open) : tokens.length
    if (hasBrace && tokens[end] === undefined) report(reading, first.line, 'a brace that opens here is never closed')
    const keys = tokens.slice(at, open).map((token) => token.text)
    const body = tokens.slice(hasBrace ? open + 1 : open, end)
    const snippet = /^\((.+)\)$/.exec(keys[0] ?? '')?.[1]
    if (snippet !== undefined && keys.length === 1) reading.snippets.set(snippet, body)
    else if (keys.length > 0 && keys[0] !== '}') blocks.push(...blocksOf(keys, body, { reading, line: first.line }))
    else if (keys[0] === '}') report(reading, first.line, 'a brace is closed that none opened')
    at = Math.max(end + 1, at + 1)
  }
  return blocks
}

/** Keys end at the brace; without one at the end of their line, unless a comma says that more follow. */
function keysEnd(tokens: readonly Token[], start: number): number {
  let at = start
  while (at < tokens.length) {
    const token = tokens[at]
    if (token?.text === '{' || (token?.text === '}' && at > start)) return at
    at++
    const next = tokens[at]
    if (next !== undefined && next.text !== '{' && next.line !== token?.line && token?.text.endsWith(',') !== true)
      return at
  }
  return at
}

/** The index of the brace that closes the one at `open`; past the end when there is none. */
function matchingBrace(tokens: readonly Token[], open: number): number {
  let depth = 0
  for (let at = open; at < tokens.length; at++) {
    const token = tokens[at]
    if (token === undefined || token.isQuoted) continue
    if (token.text === '{') depth++
    if (token.text === '}') depth--
    if (depth === 0) return at
  }
  return tokens.length
}

type Place = { readonly reading: Reading; readonly line: number }

/** One block for each port and transport among its keys. */
function blocksOf(keys: readonly string[], body: readonly Token[], { reading, line }: Place): readonly ServerBlock[] {
  const directives = parseDirectives(body, reading)
  const places = new Map<string, { transport: string; port: number; zones: string[] }>()
  for (const key of keys.flatMap((text) => text.split(',')).filter((text) => text !== '')) {
    const { transport, port, zones } = parseKey(key)
    const place = places.get(`${transport}:${port}`)
    if (place === undefined) places.set(`${transport}:${port}`, { transport, port, zones: [...zones] })
    else place.zones.push(...zones)
  }
  return [...places.values()].map((place) => ({ ...place, directives, line }))
}

const usualPorts: Readonly<Record<string, number>> = {
  dns: 53,
  tls: 853,
  quic: 853,
  https: 443,
  https3: 443,
  grpc: 443,
}

function parseKey(key: string): {
  readonly transport: string
  readonly port: number
  readonly zones: readonly string[]
} {
  const [, transport = 'dns', rest = ''] = /^(?:([a-z0-9]+):\/\/)?(.*)$/.exec(key) ?? []
  const [, host = '', port] = /^(.*?)(?::(\d{1,5}))?$/.exec(rest) ?? []
  const zones = zonesOfOrigin(host === '' ? '.' : host)
  return { transport, port: port === undefined ? (usualPorts[transport] ?? 53) : Number(port), zones }
}

/** Each line is a directive: its name, its arguments, and lines of its own between braces. */
function parseDirectives(tokens: readonly Token[], reading: Reading): readonly Directive[] {
  const directives: Directive[] = []
  let at = 0
  while (at < tokens.length) {
    const first = tokens[at]
    if (first === undefined) break
    let end = at + 1
    while (end < tokens.length && tokens[end]?.line === first.line && tokens[end]?.text !== '{') end++
    const args = tokens.slice(at + 1, end).map((token) => token.text)
    const hasBlock = tokens[end]?.text === '{' && tokens[end]?.line === first.line
    const close = hasBlock ? matchingBrace(tokens, end) : end
    if (first.text === 'import') {
      directives.push(...parseDirectives(importTokens(args[0] ?? '', first.line, reading), deeper(reading)))
    } else {
      const block = hasBlock ? parseDirectives(tokens.slice(end + 1, close), reading) : []
      directives.push({ name: first.text, args, block, line: first.line })
    }
    at = hasBlock ? close + 1 : end
  }
  return directives
}

function deeper(reading: Reading): Reading {
  return { ...reading, depth: reading.depth + 1 }
}

const deepest = 8

/** A snippet's words, or those of the files; imports in imports end somewhere. */
function importTokens(path: string, line: number, reading: Reading): readonly Token[] {
  reading.budget.left -= 1
  if (reading.depth >= deepest || reading.budget.left < 0) return []
  const snippet = reading.snippets.get(path)
  if (snippet !== undefined) return snippet
  const texts = reading.readImport(path)
  if (texts === undefined) {
    reading.findings.push(
      corefileFinding('dns.import-missing', {
        origin: { ...reading.origin, index: `data.Corefile line ${line}` },
        message: `"import ${path}" names text that the input does not hold; it is taken to be empty`,
        hint: 'add the ConfigMap that CoreDNS mounts there',
      }),
    )
    return []
  }
  return texts.flatMap((text) => tokenizeCorefile(text))
}

function reportEnvironment(text: string, reading: Reading): void {
  const names = new Set([...text.matchAll(/\{[$%]([A-Za-z_]\w*)(?::[^}\s]*)?%?\}/g)].map(([, name]) => String(name)))
  for (const name of names) {
    const message = `the Corefile takes the environment variable ${name}, which the input does not tell; it stays as written`
    reading.findings.push(corefileFinding('dns.environment-unknown', { origin: reading.origin, message }))
  }
}

function report(reading: Reading, line: number, problem: string): void {
  reading.findings.push(
    corefileFinding('dns.corefile-broken', {
      origin: { ...reading.origin, index: `data.Corefile line ${line}` },
      message: `${problem}; CoreDNS refuses this Corefile`,
    }),
  )
}
