/**
 * Packs an empty data directory of the embedded database into dist/, so that a first start unpacks it instead of making one:
 * that takes 2 s instead of 8 s, and half the memory. Kept in node_modules/.cache between builds, by PGlite's version.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PGlite } from '@electric-sql/pglite'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const entry = createRequire(import.meta.url).resolve('@electric-sql/pglite')
const { version } = JSON.parse(readFileSync(join(dirname(entry), '..', 'package.json'), 'utf8'))
const cache = join(root, 'node_modules', '.cache', 'portolan')
const cached = join(cache, `pglite-${version}.tar.gz`)
const output = join(root, 'dist', 'embedded-template.tar.gz')

if (!existsSync(cached)) {
  mkdirSync(cache, { recursive: true })
  const database = await PGlite.create()
  const packed = await database.dumpDataDir('gzip')
  const unfinished = `${cached}.${process.pid}`
  writeFileSync(unfinished, Buffer.from(await packed.arrayBuffer()))
  renameSync(unfinished, cached)
  await database.close()
}
mkdirSync(dirname(output), { recursive: true })
copyFileSync(cached, output)
