/** Options that `maps` and `maps diff` share: the objects, the node and the version. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { Failure } from '#base/failure'
import { canonicalIp, explainBadIp } from '#base/ip'
import { type CiliumVersion, ciliumVersions, defaultCiliumVersion } from '#model/cilium-version'
import { addObjectOptions, addSlicesOption, type FromOptions } from './options'

export type MapsInputOptions = FromOptions & {
  readonly node?: string
  readonly cilium: CiliumVersion
  readonly device?: ReadonlyMap<string, readonly string[]>
}

export function addMapsInputOptions(command: Command): Command {
  return addSlicesOption(addObjectOptions(command))
    .option('--node <name>', 'the node whose maps they are')
    .addOption(
      new Option('--cilium <version>', 'names, layouts and semantics of this version')
        .choices([...ciliumVersions])
        .default(defaultCiliumVersion),
    )
    .option(
      '--device <name=ip[,ip]>',
      'addresses of a device of the node, beyond what its Node object tells; may repeat',
      asDevices,
    )
}

export function asDevices(
  text: string,
  earlier: ReadonlyMap<string, readonly string[]> | undefined,
): ReadonlyMap<string, readonly string[]> {
  const [name = '', ...rest] = text.split('=')
  const addresses = rest.join('=').split(',')
  const bad = addresses.find((one) => canonicalIp(one) === undefined)
  if (name === '' || rest.length === 0)
    throw new InvalidArgumentError('write NAME=ADDRESS[,ADDRESS], as in eth1=192.0.2.5.')
  if (bad !== undefined) throw new InvalidArgumentError(explainBadIp(bad))
  return new Map([...(earlier ?? []), [name, addresses.flatMap((one) => canonicalIp(one) ?? [])]])
}

/** Maps differ from node to node. The option is not mandatory for commander, which would ask it of subcommands as well. */
export function nodeOf({ node }: MapsInputOptions): string {
  if (node !== undefined) return node
  throw new Failure('usage.bad-argument', 'maps are those of a node; name it with --node')
}
