/** Where the samples lie: beside the built program, or beside its sources. */
import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Failure } from '#base/failure'

/** As a path a person can repeat from the current folder. */
export function sampleFolder(name: 'shop' | 'recorded-day'): string {
  const places = [`../samples/${name}`, `../../samples/${name}`].map((place) =>
    fileURLToPath(new URL(place, import.meta.url)),
  )
  const found = places.find((place) => existsSync(place))
  if (found === undefined) {
    throw new Failure(
      'input.unreadable',
      `the sample ${name} is missing from this installation (looked in ${places[0]}); install Portolan again`,
    )
  }
  const near = relative(process.cwd(), found)
  return near.startsWith('..') ? found : near
}
