/** A folder that an option names, made where it is missing. */
import { Failure } from '#base/failure'
import { makeFolders } from '#sources/make-folders'
import { reasonOf } from '#sources/system-error'

export function requireFolder(path: string, option: string): void {
  try {
    makeFolders(path)
  } catch (cause) {
    throw new Failure(
      'usage.bad-argument',
      `${path} cannot be made: ${reasonOf(cause)}; name another folder with ${option}`,
      cause,
    )
  }
}
