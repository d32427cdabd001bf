/** Every command, in the order `--help` lists them; each loads the rooms it needs when it is asked for. */
import type { AddCommand } from './command'

type CommandEntry = { readonly name: string; readonly load: () => Promise<AddCommand> }

const commands: readonly CommandEntry[] = [
  { name: 'endpoints', load: async () => (await import('./endpoints')).addEndpoints },
  { name: 'iptables', load: async () => (await import('./iptables')).addIptables },
  { name: 'nftables', load: async () => (await import('./nftables')).addNftables },
  { name: 'trace', load: async () => (await import('./trace')).addTrace },
  { name: 'explain', load: async () => (await import('./explain')).addExplain },
  { name: 'dns', load: async () => (await import('./dns')).addDns },
  { name: 'resolv-conf', load: async () => (await import('./resolv-conf')).addResolvConf },
  { name: 'policy', load: async () => (await import('./policy')).addPolicy },
  { name: 'maps', load: async () => (await import('./maps')).addMaps },
  { name: 'path', load: async () => (await import('./path')).addPath },
  { name: 'generate', load: async () => (await import('./generate')).addGenerate },
  { name: 'broker', load: async () => (await import('./broker')).addBroker },
  { name: 'flows', load: async () => (await import('./flows')).addFlows },
  { name: 'who', load: async () => (await import('./who')).addWho },
  { name: 'agent', load: async () => (await import('./agent')).addAgent },
  { name: 'controller', load: async () => (await import('./controller')).addController },
  { name: 'demo', load: async () => (await import('./demo')).addDemo },
]

/** The one that the command line `argv` calls; all of them where it asks for help or names none that there is. */
export async function loadCommands(argv: readonly string[]): Promise<readonly AddCommand[]> {
  const word = argv.find((one) => !one.startsWith('-'))
  const called = commands.filter(({ name }) => name === word)
  return Promise.all((called.length === 0 ? commands : called).map(({ load }) => load()))
}
