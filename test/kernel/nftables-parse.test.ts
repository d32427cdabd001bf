/**
 * Proves that the parsers read what a kernel holds: one state, listed as text, with handles, in numbers and as JSON, gives
 * one ruleset, and prints as it was listed. The rulesets of test/saves-nft are loaded again and listed back equal;
 * PORTOLAN_UPDATE_SAVES=1 stores what the kernel lists instead.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Layout } from '#compile/nftables/layout'
import { parseNftJson } from '#compile/nftables/parse-json'
import { parseNftList } from '#compile/nftables/parse-list'
import { printList } from '#compile/nftables/print-list'
import { printScript } from '#compile/nftables/print-script'
import { type Ruleset, rulesetOf } from '#compile/nftables/ruleset'
import { type Exhibit, gallery } from '../golden/nftables-gallery'
import { galleryTable } from '../golden/nftables-gallery-table'
import { tableOfSketch } from '../random/nftables-table'
import { randomOf, seedOfRun } from '../random/random'
import { randomCluster } from '../random/random-cluster'
import { plainRuleset, unknownParts } from '../saves-nft/plain-ruleset'
import { type WrittenRules, writtenRules } from '../saves-nft/written-rules'
import { describeKernel } from './describe-kernel'
import { createNamespaces, inside, removeNamespaces } from './namespace'
import { findLacks, type Lacks } from './nftables-lacks'
import { type CommandOutcome, mustRun, runCommand } from './run-command'

const folder = new URL('../saves-nft/', import.meta.url)
const savesFolder = new URL('../saves/', import.meta.url)
const names = readdirSync(folder).flatMap((file) => (file.endsWith('.nft') ? [file.slice(0, -4)] : []))

/** Tables of iptables-nft do not load as nft lists them; they come from the save that nft shows here. */
const iptablesSaves: Readonly<Record<string, string>> = {
  cilium: 'cilium',
  docker: 'docker-28',
  'kube-proxy-iptables': 'kube-proxy',
  'node-dual': 'docker',
  'rare-matches': 'rare-matches',
  ufw: 'ufw',
}

let namespace = ''
let lacks: Lacks = () => []

function nft(args: readonly string[]): string {
  return mustRun(inside(namespace, ['nft', ...args]))
}

/** As a terminal shows it: warnings stand before the tables they are about. */
function listShown(): string {
  return mustRun(inside(namespace, ['sh', '-c', 'nft list ruleset 2>&1']))
}

function load(script: string): CommandOutcome {
  nft(['flush', 'ruleset'])
  return runCommand(inside(namespace, ['nft', '-f', '-']), script)
}

/** The ruleset of the plain listing; every other form of the same state must give the same. */
function readEveryForm(): Ruleset {
  const text = nft(['list', 'ruleset'])
  const { ruleset, findings } = parseNftList(text, 'list')
  expect(findings).toEqual([])
  expect(unknownParts(ruleset)).toEqual([])
  expect(printList(ruleset)).toBe(text)
  for (const options of [['-a'], ['-y'], ['-n'], ['-a', '-n']]) compareText(ruleset, options)
  for (const options of [['-j'], ['-j', '-n'], ['-j', '-a']]) compareJson(ruleset, options)
  return ruleset
}

function compareText(ruleset: Ruleset, options: readonly string[]): void {
  const read = parseNftList(nft([...options, 'list', 'ruleset']), options.join(' '))
  const against = options.includes('-n') ? 'numeric' : 'text'
  expect({ options, findings: read.findings }).toEqual({ options, findings: [] })
  expect({ options, read: plainRuleset(read.ruleset, against) }).toEqual({
    options,
    read: plainRuleset(ruleset, against),
  })
}

function compareJson(ruleset: Ruleset, options: readonly string[]): void {
  const read = parseNftJson(nft([...options, 'list', 'ruleset']), options.join(' '))
  expect({ options, findings: read.findings }).toEqual({ options, findings: [] })
  expect({ options, read: plainRuleset(read.ruleset, 'json') }).toEqual({
    options,
    read: plainRuleset(ruleset, 'json'),
  })
}

/** Handles and what runs off differ from one listing to the next. */
function withoutMoments(text: string): string {
  return text
    .replaceAll(/ expires [\dhmsd]+/g, '')
    .replaceAll(/"handle": \d+, |, "handle": \d+|"expires": \d+, |, "expires": \d+/g, '')
}

describeKernel('nftables parsers', () => {
  beforeAll(() => {
    namespace = createNamespaces(['nft'])[0] ?? ''
    lacks = findLacks(namespace)
    mustRun(
      inside(namespace, ['ip', '-batch', '-']),
      'link set lo up\nlink add eth0 type veth peer name eth1\nlink set eth0 up\nlink set eth1 up\n',
    )
  })
  afterAll(() => removeNamespaces([namespace]))

  describe('the rulesets of test/saves-nft', () => {
    test.each(names)('%s is listed back, and read from each form', (name) => {
      const save = read(`${name}.nft`)
      loadSave(name, save)
      if (process.env.PORTOLAN_UPDATE_SAVES === '1') {
        writeFileSync(new URL(`${name}.nft`, folder), listShown())
        writeFileSync(new URL(`${name}.json.txt`, folder), nft(['-j', 'list', 'ruleset']))
        return
      }
      expect(withoutMoments(listShown())).toBe(withoutMoments(save))
      expect(withoutMoments(nft(['-j', 'list', 'ruleset']))).toBe(withoutMoments(read(`${name}.json.txt`)))
      if (iptablesSaves[name] !== undefined) readIptables(save)
      else compareText(readEveryForm(), ['-S'])
    })
  })

  function read(file: string): string {
    return readFileSync(new URL(file, folder), 'utf8')
  }

  function loadSave(name: string, save: string): void {
    nft(['flush', 'ruleset'])
    const source = iptablesSaves[name]
    if (source !== undefined) {
      if (name === 'rare-matches') mustRun(inside(namespace, ['ipset', 'restore']), readSave(`${source}.ipset`))
      mustRun(inside(namespace, ['xtables-nft-multi', 'iptables-restore', '--noflush']), readSave(`${source}.save`))
    }
    const { ruleset, findings } = parseNftList(save, name)
    const foreign = findings.flatMap(({ code, message }) => (code === 'nft.iptables-nft' ? [message] : []))
    const own = [...ruleset.tables].filter(
      ([key]) => source === undefined || !/^ip6? (filter|nat|raw|mangle|security)$/.test(key),
    )
    if (source !== undefined) expect(foreign).toHaveLength(1)
    const loaded = runCommand(inside(namespace, ['nft', '-f', '-']), printScript({ tables: new Map(own) }))
    expect(loaded.ok ? '' : loaded.message).toBe('')
  }

  function readSave(file: string): string {
    return readFileSync(new URL(file, savesFolder), 'utf8')
  }

  /** What iptables-nft wrote is told by name in JSON, and translated in text: only the text is compared. */
  function readIptables(save: string): void {
    const [text, numeric] = [parseNftList(save, 'list'), parseNftList(nft(['-a', '-y', 'list', 'ruleset']), 'numeric')]
    expect(text.findings.map(({ code }) => code)).toEqual(['nft.iptables-nft'])
    expect(unknownParts(text.ruleset)).toEqual([])
    expect(plainRuleset(numeric.ruleset)).toEqual(plainRuleset(text.ruleset))
    expect(parseNftJson(nft(['-j', 'list', 'ruleset']), 'json').findings).toEqual([])
  }

  describe('the gallery of statements', () => {
    test.each(gallery.map((wing) => [`${wing.family} ${wing.type} ${wing.hook}`, wing] as const))('%s', (_, wing) => {
      const rulesetFor = (exhibits: readonly Exhibit[]) =>
        rulesetOf([
          galleryTable(
            wing,
            exhibits.map(([, ...statements]) => statements),
          ),
        ])
      const known = loadable(wing.exhibits, (exhibits) => printScript(rulesetFor(exhibits)))
      expect(plainRuleset(readEveryForm())).toEqual(plainRuleset(rulesetFor(known)))
    })
  })

  /** All of them, or those that this kernel does not lack something for; they are loaded then. */
  function loadable<T>(all: readonly T[], scriptOf: (some: readonly T[]) => string): readonly T[] {
    if (loads(scriptOf(all))) return all
    const known = all.filter((one) => loads(scriptOf([one])))
    console.log(`this kernel lacks something for ${all.length - known.length} of ${all.length}`)
    expect(loads(scriptOf(known))).toBe(true)
    return known
  }

  /** False when this kernel lacks something; any other refusal fails. */
  function loads(script: string): boolean {
    const loaded = load(script)
    if (!loaded.ok && lacks(script).length === 0) expect.fail(`${loaded.message}\n${script}`)
    return loaded.ok
  }

  describe('rules as people write them', () => {
    test.each(writtenRules.map((place) => [`${place.family} ${place.type} ${place.hook}`, place] as const))(
      '%s',
      (_, place) => {
        const known = loadable(place.rules, (rules) => scriptOf(place, rules))
        readEveryForm()
        const written = parseNftList(scriptOf(place, known), 'script')
        expect(written.findings).toEqual([])
        expect(unknownParts(written.ruleset)).toEqual([])
        // What is read from the script is what the kernel holds: it loads, and lists as the script itself does.
        const listed = nft(['list', 'ruleset'])
        expect(loads(printScript(written.ruleset))).toBe(true)
        expect(nft(['list', 'ruleset'])).toBe(listed)
      },
    )
  })

  function scriptOf({ family, type, hook }: WrittenRules, rules: readonly string[]): string {
    const lines = rules.map((rule) => `add rule ${family} t c ${rule}\n`)
    return `add table ${family} t\nadd chain ${family} t c { type ${type} hook ${hook} priority 0 ; }\n${lines.join('')}`
  }

  test('random rules of the gallery', () => {
    const seed = seedOfRun()
    for (let at = 0; at < Number(process.env.PORTOLAN_FUZZ_TABLES ?? 25); at++) {
      const random = randomOf(seed + at)
      const wing = random.pickFrom(gallery)
      if (wing === undefined) continue
      const exhibits = random.some(wing.exhibits, 12)
      const rules = exhibits.map(([, ...statements]) => statements)
      if (loads(printScript(rulesetOf([galleryTable(wing, rules)])))) readEveryForm()
    }
  })

  test('kube-proxy’s tables for random clusters, in every layout', () => {
    const layouts: readonly Layout[] = ['1.31', '1.34', '1.36']
    const seed = seedOfRun()
    for (let at = 0; at < Number(process.env.PORTOLAN_FUZZ_TABLES ?? 25); at++) {
      const sketch = randomCluster(seed + at, at % 2 === 0 ? 'ipv4' : 'ipv6')
      const ruleset = rulesetOf([tableOfSketch(sketch, layouts[at % 3] ?? '1.34')])
      const loaded = load(printScript(ruleset))
      expect(loaded.ok ? '' : loaded.message).toBe('')
      expect(plainRuleset(readEveryForm())).toEqual(plainRuleset(ruleset))
    }
  })
})

test('the page of test/saves-nft has one row for each ruleset', () => {
  const rows = [...readFileSync(new URL('README.md', folder), 'utf8').matchAll(/^\| `([^`]+)\.nft`/gm)].map(
    (row) => row[1],
  )
  expect(rows.sort()).toEqual(names.sort())
})
