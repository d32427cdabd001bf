/** The plugins of one server block, in CoreDNS's own order whatever order the Corefile has. */
import type { Cluster } from '#model/cluster'
import type { EndpointSlice } from '#model/endpoint-slice'
import { clusterNameservers } from './cluster-nameservers'
import type { Directive, ServerBlock } from './corefile'
import type { KubernetesOptions } from './kubernetes-options'
import { chainPlugins, type Handler, type Plugin } from './plugin'
import type { Notes } from './plugin-notes'
import { isKnownPlugin, mayAnswer, pluginOrder, silentPlugins } from './plugin-order'
import { readKubernetes } from './read-kubernetes'
import { emptyReply, withDoubt } from './record'
import { serveAutopath } from './serve-autopath'
import { serveCache } from './serve-cache'
import { serveForward } from './serve-forward'
import { type ReadFile, readHosts, serveHosts } from './serve-hosts'
import { serveKubernetes } from './serve-kubernetes'
import { readRewrite, serveRewrites } from './serve-rewrite'
import { readTemplate, serveTemplates } from './serve-template'
import { indexZone, type ZoneIndex } from './zone-index'

export type ChainInput = {
  readonly cluster: Cluster
  readonly slices: readonly EndpointSlice[]
  readonly nodeSearch?: readonly string[]
  readonly notes: Notes
  readonly lookUp: Handler
  readonly readFile: ReadFile
}

export type Chain = { readonly answer: Handler; readonly zones: readonly string[] }

type Kubernetes = { readonly options: KubernetesOptions; readonly index: ZoneIndex }

export function buildChain(block: ServerBlock, input: ChainInput): Chain {
  const found = block.directives.find(({ name }) => name === 'kubernetes')
  const options = found === undefined ? undefined : readKubernetes(found, block.zones, input.notes)
  const kubernetes = options === undefined ? undefined : { options, index: indexZone(input, options) }
  const names = [...new Set(block.directives.map(({ name }) => name))].filter((name) => !silentPlugins.has(name))
  const ordered = names.sort((a, b) => placeOf(a) - placeOf(b))
  const plugins = ordered.flatMap((name): readonly Plugin[] => {
    const directives = block.directives.filter((directive) => directive.name === name)
    return pluginsOf(name, directives, { block, input, kubernetes })
  })
  const last: Handler = ({ name }) =>
    emptyReply('SERVFAIL', 'server', `no plugin of this server block answers for ${name}`)
  return { answer: chainPlugins(plugins, last), zones: options?.zones ?? [] }
}

/** A plugin that is built in by somebody else may stand anywhere: it is taken to stand first. */
function placeOf(name: string): number {
  return pluginOrder.indexOf(name)
}

type Building = { readonly block: ServerBlock; readonly input: ChainInput; readonly kubernetes: Kubernetes | undefined }

function pluginsOf(name: string, directives: readonly Directive[], building: Building): readonly Plugin[] {
  const { block, input, kubernetes } = building
  const { notes, lookUp } = input
  const { zones } = block
  switch (name) {
    case 'cache':
      return directives.slice(0, 1).map((directive) => serveCache(directive, zones))
    case 'rewrite':
      return [serveRewrites(directives.flatMap((directive) => readRewrite(directive, notes)))]
    case 'autopath':
      return directives.slice(0, 1).map((directive) => autopathOf(directive, building))
    case 'template': {
      const templates = directives.flatMap((directive) => readTemplate(directive, zones, notes) ?? [])
      return [serveTemplates(templates, lookUp)]
    }
    case 'hosts':
      return directives.slice(0, 1).map((directive) => serveHosts(readHosts(directive, zones, input)))
    case 'kubernetes': {
      if (kubernetes === undefined) return []
      const { service } = clusterNameservers(input.cluster)
      return [serveKubernetes({ ...kubernetes, lookUp, ...(service !== undefined && { own: service }) })]
    }
    case 'forward':
    case 'grpc':
    case 'proxy':
      return directives.map(serveForward)
    default:
      return directives.map((directive) => doubtful(directive, notes))
  }
}

function autopathOf(directive: Directive, { block, input, kubernetes }: Building): Plugin {
  if (directive.args.at(-1) === '@kubernetes' && kubernetes?.options.pods !== 'verified') {
    input.notes.note('dns.autopath-without-pods', directive, {
      message: 'autopath @kubernetes has no effect without "pods verified" in the kubernetes plugin',
    })
  }
  const deps = { nodeSearch: input.nodeSearch ?? [], ...(kubernetes !== undefined && { kubernetes }) }
  return serveAutopath(directive, block.zones, deps)
}

function doubtful(directive: Directive, notes: Notes): Plugin {
  const { name } = directive
  const isKnown = isKnownPlugin(name)
  notes.note('dns.unknown-plugin', directive, {
    message: isKnown
      ? `Portolan does not know the records of plugin ${name}; questions that it may answer are marked`
      : `Portolan does not know the plugin ${name}, which may answer any question; answers are marked`,
  })
  const doubt = isKnown ? `plugin ${name} may answer instead` : `the unknown plugin ${name} may answer first`
  return {
    name,
    serve: (question, next) => {
      const reply = next(question)
      return mayAnswer(directive, question) ? withDoubt(reply, doubt) : reply
    },
  }
}
