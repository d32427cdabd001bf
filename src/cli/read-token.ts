/** A token from a file, where other users do not see it. */
import { readFileSync } from 'node:fs'
import { Failure } from '#base/failure'

export function readToken(flag: string, path: string): string {
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new Failure('input.unreadable', `--${flag} ${path} cannot be read; give a file that holds a token`, error)
  }
  if (text !== '') return text
  throw new Failure('input.unreadable', `--${flag} ${path} is empty; write a token into it`)
}
