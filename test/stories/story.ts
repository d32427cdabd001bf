/** Stories: one page with a cluster, commands and their output. A run section's body is what the command printed. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runPortolan } from '../../src/cli/run-portolan'

/** `run` sections hold a command line in `name`, others a file's name. */
export type Section = { readonly kind: 'run' | 'file'; readonly name: string; readonly body: string }

export type Story = { readonly path: string; readonly head: string; readonly sections: readonly Section[] }

const folder = join(dirname(fileURLToPath(import.meta.url)), '..', 'cases')

export function storyPaths(): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.txt'))
    .sort()
    .map((name) => join(folder, name))
}

const mark = /^-- (?:(run): )?(.+) --$/gm

export function parseStory(path: string): Story {
  const text = readFileSync(path, 'utf8')
  const marks = [...text.matchAll(mark)]
  const sections = marks.map((found, index): Section => {
    const body = text.slice(found.index + found[0].length + 1, marks[index + 1]?.index ?? text.length)
    return { kind: found[1] === 'run' ? 'run' : 'file', name: String(found[2]), body }
  })
  return { path, head: text.slice(0, marks[0]?.index ?? text.length), sections }
}

/** The story with the output of its commands as it is now. */
export async function playStory(story: Story): Promise<string> {
  const place = mkdtempSync(join(tmpdir(), 'portolan-story-'))
  try {
    const parts = [story.head]
    for (const section of story.sections) {
      if (section.kind === 'file') writeFileSync(join(place, section.name), section.body)
      const body = section.kind === 'file' ? section.body : await runLine(section.name, place)
      parts.push(`-- ${section.kind === 'run' ? 'run: ' : ''}${section.name} --\n${body}`)
    }
    return parts.join('')
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

/** Standard output, then standard error behind `! `, then the exit code when it is not 0. `> FILE` keeps the output. */
async function runLine(line: string, place: string): Promise<string> {
  const [command = '', kept] = line.split(' > ')
  const words = command.split(' ').map((word) => word.replace(/^CASE\//, `${place}/`))
  if (words[0] !== 'portolan') throw new Error(`a story runs portolan, not "${words[0]}"`)
  let out = ''
  let err = ''
  const code = await runPortolan(words.slice(1), {
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
    stdin: noInput(),
    isTerminal: false,
  })
  if (kept !== undefined) {
    writeFileSync(join(place, kept.replace(/^CASE\//, '')), out)
    out = ''
  }
  const shown = `${out}${err.replaceAll(/^(?=.)/gm, '! ')}${code === 0 ? '' : `exit ${code}\n`}`
  return `${shown.replaceAll(place, 'CASE').replace(/\n*$/, '\n')}\n`
}

async function* noInput(): AsyncGenerator<Uint8Array> {}
