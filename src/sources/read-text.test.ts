import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, test } from 'vitest'
import { readText } from './read-text'

const folder = mkdtempSync(join(tmpdir(), 'portolan-text-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function readBytes(bytes: Uint8Array): Promise<string> {
  const path = join(folder, 'f')
  writeFileSync(path, bytes)
  return readText(path)
}

const utf16be = (text: string): Buffer => Buffer.from(`\ufeff${text}`, 'utf16le').swap16()
const tar = Buffer.concat([Buffer.alloc(257), Buffer.from('ustar'), Buffer.alloc(250)])

describe('encodings', () => {
  const text = 'kind: Pod # Größe ✓\r\n'

  test.each([
    ['UTF-8', Buffer.from(text)],
    ['UTF-8 with a byte order mark', Buffer.from(`\ufeff${text}`)],
    ['UTF-16 as PowerShell writes it', Buffer.from(`\ufeff${text}`, 'utf16le')],
    ['UTF-16, the other way round', utf16be(text)],
    ['gzip', gzipSync(text)],
    ['gzip in several members', Buffer.concat([gzipSync(text.slice(0, 5)), gzipSync(text.slice(5))])],
    ['gzip of UTF-16', gzipSync(Buffer.from(`\ufeff${text}`, 'utf16le'))],
  ])('%s', async (_, bytes) => {
    expect(await readBytes(bytes)).toBe(text)
  })

  test('an empty file is an empty text: what that means is for the reader to say', async () => {
    expect(await readBytes(Buffer.alloc(0))).toBe('')
  })

  test.each([
    [
      'a binary file',
      Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0, 0, 0]),
      'is a binary file, not text; give YAML, JSON or a ruleset as its command prints it',
    ],
    ['a zip archive', Buffer.from('PK\u0003\u0004'), 'is a zip archive, not text; unpack it and give the files in it'],
    [
      'zstd',
      Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 1]),
      'is compressed with zstd, not text; unpack it and give the files in it',
    ],
    ['a tar archive, packed', gzipSync(tar), 'is a tar archive, not text; unpack it and give the files in it'],
    [
      'Latin-1',
      Buffer.from('a: b\nc: caf\xe9\n', 'latin1'),
      'is not UTF-8 text (line 2 is the first that is not); write it as UTF-8',
    ],
    [
      'UTF-16 without a mark',
      Buffer.from('kind: Pod', 'utf16le'),
      'looks like UTF-16 text without a byte order mark; write it as UTF-8',
    ],
    [
      'UTF-16 cut in a character',
      Buffer.from([0xff, 0xfe, 0x41, 0, 0x00, 0xd8]),
      'begins as UTF-16 text but is none to its end; write it as UTF-8, or write the whole file again',
    ],
  ])('%s is refused with the remedy', async (_, bytes, sentence) => {
    await expect(readBytes(bytes)).rejects.toMatchObject({
      code: 'input.unreadable',
      message: `${join(folder, 'f')} ${sentence}`,
    })
  })

  test.each([
    ['cut', gzipSync('kind: Pod\n'.repeat(100)).subarray(0, 30), 'the gzip data ends too early'],
    [
      'damaged',
      Buffer.concat([gzipSync('x').subarray(0, 10), Buffer.from('not deflate at all')]),
      'its gzip data is damaged',
    ],
  ])('gzip data that is %s', async (_, bytes, fact) => {
    const message = `${join(folder, 'f')} cannot be read: ${fact}; write the file again`
    await expect(readBytes(bytes)).rejects.toMatchObject({ code: 'input.unreadable', message })
  })

  test('gzip data that unpacks beyond what one text can hold', async () => {
    const member = gzipSync(Buffer.alloc(64 * 1024 * 1024, 32))
    await expect(readBytes(Buffer.concat(Array(9).fill(member)))).rejects.toMatchObject({ code: 'input.too-large' })
  })
})

test('a pipe is read to its end, as a shell makes one for <(command)', async () => {
  const pipe = join(folder, 'pipe')
  execFileSync('sh', ['-c', 'mkfifo "$0"', pipe])
  const [text] = await Promise.all([readText(pipe), writeFile(pipe, 'kind: Pod\n')])
  expect(text).toBe('kind: Pod\n')
})

test('one text that is too large is sent to no kubectl command', async () => {
  async function* endless() {
    const piece = Buffer.alloc(64 * 1024 * 1024)
    for (;;) yield piece
  }
  await expect(readText('-', { stdin: endless(), say: () => undefined })).rejects.toMatchObject({
    code: 'input.too-large',
    message:
      'standard input holds more than 536 MB, the most that can be read at once; check that it is the file that was meant, or cut out the part that is needed',
  })
})

test('a folder is no text', async () => {
  await expect(readText(folder)).rejects.toMatchObject({
    message: `${folder} is a folder, where one file is wanted; name a file in it`,
  })
})

test('a reading that takes long tells of itself: not before two seconds, and then once a second', async () => {
  async function* slowly() {
    for (let piece = 0; piece < 10; piece++) {
      time += 500
      yield Buffer.alloc(1_000_000, 32)
    }
  }
  let time = 0
  const said: string[] = []
  await readText('-', {
    stdin: slowly(),
    now: () => time,
    say: (sentence) => said.push(`${time / 1000} s: ${sentence}`),
  })
  expect(said).toEqual([
    '2 s: reading standard input: 4 MB so far',
    '3 s: reading standard input: 6 MB so far',
    '4 s: reading standard input: 8 MB so far',
    '5 s: reading standard input: 10 MB so far',
  ])
})
