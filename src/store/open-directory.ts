/** Opens the data directory of the embedded database, under its lock; one that does not open is moved aside, not tried for ever. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statfsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Failure } from '#base/failure'
import { type DirectoryLock, lockDirectory } from './directory-lock'
import { openEmbedded } from './embedded-engine'
import type { Engine } from './engine'

export type OpenedDirectory = { readonly engine: Engine; readonly notices: readonly string[] }

export async function openDirectory(given: string): Promise<OpenedDirectory> {
  const directory = resolve(given)
  refuseForeign(directory)
  const lock = prepare(directory)
  try {
    const { engine, notices } = await openOrMoveAside(directory)
    return { engine: { ...engine, close: () => engine.close().finally(lock.release) }, notices }
  } catch (error) {
    lock.release()
    throw error
  }
}

const durability =
  'the embedded database survives a killed process, not a power cut or a crashed machine: what the system had not yet written is lost, ' +
  'and the directory may then not open. Use --database postgres://… where that matters.'

function prepare(directory: string): DirectoryLock {
  try {
    mkdirSync(dirname(directory), { recursive: true })
    return lockDirectory(directory)
  } catch (error) {
    if (error instanceof Failure) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw new Failure('database-refused', `the data directory ${directory} cannot be written: ${reason}`, error)
  }
}

/** What PGlite makes there; a kill while it begins may leave some of it. */
const ownNames = /^(PG_VERSION|base|global|pg_\w+(\.conf)?|postgresql(\.auto)?\.conf|postmaster\.pid|lost\+found)$/
/** The major version of PostgreSQL that PGlite 0.5 is. */
const ownVersion = '18'

/**
 * A directory full of something else is a mistake in the command line, and none of our business to write to or to move: a
 * folder of manifests with its `base`, the data of a PostgreSQL server, or of another version of the embedded one.
 */
function refuseForeign(directory: string): void {
  if (!existsSync(directory)) return
  if (!statSync(directory).isDirectory()) {
    throw new Failure('database-refused', `${directory} is a file; give a directory`)
  }
  const names = readdirSync(directory)
  const foreign = names.filter((name) => !ownNames.test(name))
  if (foreign.length > 0) {
    throw new Failure(
      'database-refused',
      `the directory ${directory} holds other files (${foreign.slice(0, 3).join(', ')}); give an empty one or one that does not exist`,
    )
  }
  const version = names.includes('PG_VERSION') ? readFileSync(`${directory}/PG_VERSION`, 'utf8').trim() : ''
  if (version === '' || version === ownVersion) return
  throw new Failure(
    'database-refused',
    `the directory ${directory} is of PostgreSQL ${version}, and the embedded database is ${ownVersion}; give another directory`,
  )
}

/** What ails the machine and not the directory, which will open when that is mended. */
function isPassing(directory: string, reason: string): boolean {
  if (
    /No space left|Permission denied|Read-only|Too many open files|out of memory|E(NOSPC|ACCES|PERM|ROFS|MFILE|NOMEM)\b/i.test(
      reason,
    )
  ) {
    return true
  }
  const { bavail, bsize } = statfsSync(directory)
  return bavail * bsize < leastFreeBytes
}

/** A segment of the write-ahead log has 16 MB. */
const leastFreeBytes = 20_000_000

async function openOrMoveAside(directory: string): Promise<OpenedDirectory> {
  const wasThere = existsSync(`${directory}/PG_VERSION`) || existsSync(`${directory}/base`)
  try {
    return { engine: await openChecked(directory), notices: [durability] }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    if (!wasThere) throw asRefusal(directory, error)
    if (isPassing(directory, reason))
      throw asRefusal(directory, error, '; make room or mend its permissions: it stays as it is')
    const aside = `${directory}.unreadable-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`
    renameSync(directory, aside)
    const moved =
      `the data directory ${directory} did not open (${reason}); it was moved to ${aside} and an empty one was begun. ` +
      'Keep it if what it held is wanted: PostgreSQL 18 tools may read it.'
    return { engine: await openChecked(directory), notices: [moved, durability] }
  }
}

/** A first question finds the directory that opens and then cannot be read. */
async function openChecked(directory: string): Promise<Engine> {
  const engine = await openEmbedded(directory)
  try {
    await engine.query({ text: 'select count(*) from pg_class' })
    return engine
  } catch (error) {
    await engine.close().catch(() => undefined)
    throw error
  }
}

function asRefusal(directory: string, error: unknown, advice = ''): Failure {
  const reason = error instanceof Error ? error.message : String(error)
  return new Failure(
    'database-refused',
    `the embedded database could not be started in ${directory}: ${reason}${advice}`,
    error,
  )
}
