/** The plugins of CoreDNS in the order they are asked (plugin.cfg, 1.14), and what each of them can do to an answer. */

import type { Directive } from './corefile'
import { foldName, matchZone, zonesOfOrigin } from './domain-name'
import type { Question } from './record'

const silent =
  'root metadata geoip cancel tls quic timeouts multisocket proxyproto reload nsid bufsize bind debug trace ready health pprof prometheus errors log dnstap chaos loadbalance tsig header dnssec minimal transfer loop on sign grpc_server https https3'

/** Plugins that change no answer to a question of a pod. */
export const silentPlugins: ReadonlySet<string> = new Set(silent.split(' '))

/** Those that answer, in order. */
export const pluginOrder: readonly string[] =
  'view local dns64 acl any cache rewrite autopath template hosts route53 azure clouddns k8s_external kubernetes file auto secondary etcd forward grpc proxy erratic whoami nomad'.split(
    ' ',
  )

/** Plugins that Portolan knows of but whose records it has not: which questions one may answer. */
const scopes: Readonly<Record<string, (question: Question, directive: Directive) => boolean>> = {
  view: () => true,
  local: ({ name }) => /^(localhost\.|(.*\.)?(0|127|255)\.in-addr\.arpa\.$)/.test(foldName(name)),
  dns64: ({ type }) => type === 'AAAA',
  acl: ({ name }, { args }) => isInAny(name, args),
  any: ({ type }) => type === 'ANY',
  route53: ({ name }, { args }) => isInAny(name, args.map(beforeColon)),
  azure: ({ name }, { args }) =>
    isInAny(
      name,
      args.map((arg) => arg.split(':').at(-1) ?? ''),
    ),
  clouddns: ({ name }, { args }) => isInAny(name, args.map(beforeColon)),
  k8s_external: ({ name }, { args }) => isInAny(name, args),
  file: ({ name }, { args }) => isInAny(name, args.slice(1)),
  auto: ({ name }, { args }) => isInAny(name, args),
  secondary: ({ name }, { args }) => isInAny(name, args),
  etcd: ({ name }, { args }) => isInAny(name, args),
  nomad: ({ name }, { args }) => isInAny(name, args.length === 0 ? ['service.nomad'] : args),
  erratic: () => true,
  whoami: () => true,
}

/** True when the plugin, which is not modelled, may answer the question; always for one that nobody knows. */
export function mayAnswer(directive: Directive, question: Question): boolean {
  const scope = scopes[directive.name]
  return scope === undefined || scope(question, directive)
}

export function isKnownPlugin(name: string): boolean {
  return silentPlugins.has(name) || pluginOrder.includes(name)
}

function beforeColon(text: string): string {
  return text.split(':')[0] ?? ''
}

/** Without zones of its own a plugin takes those of its server block, where the question already is. */
function isInAny(name: string, zones: readonly string[]): boolean {
  return zones.length === 0 || matchZone(foldName(name), zones.flatMap(zonesOfOrigin)) !== undefined
}
