/** The `fallthrough` option that several plugins share: zones whose failed questions go on to the next plugin. */
import { isWithin, zonesOfOrigin } from './domain-name'

/** Empty when nothing falls through. */
export type Fallthrough = readonly string[]

/** Without arguments every zone falls through. */
export function parseFallthrough(args: readonly string[]): Fallthrough {
  return args.length === 0 ? ['.'] : args.flatMap(zonesOfOrigin)
}

export function fallsThrough(zones: Fallthrough, name: string): boolean {
  return zones.some((zone) => isWithin(name, zone))
}
