/** The kubernetes plugin's options from its lines in the Corefile (plugin/kubernetes/setup.go, CoreDNS 1.14). */
import type { Directive } from './corefile'
import { zonesOfOrigin } from './domain-name'
import { parseFallthrough } from './fallthrough'
import { defaultOptions, type KubernetesOptions } from './kubernetes-options'
import { parseLabelSelector } from './label-selector'
import type { Notes } from './plugin-notes'

type Draft = { -readonly [Key in keyof KubernetesOptions]: KubernetesOptions[Key] }

/** Without zones of its own the plugin takes those of its server block. */
export function readKubernetes(directive: Directive, zones: readonly string[], notes: Notes): KubernetesOptions {
  const own = directive.args.flatMap(zonesOfOrigin)
  const draft: Draft = { ...defaultOptions(own.length === 0 ? zones : own) }
  for (const option of directive.block) readOption(option, draft, notes)
  return draft
}

/** Options that tell how CoreDNS reaches the API server; they change no answer. */
const silent = new Set([
  'endpoint',
  'tls',
  'kubeconfig',
  'startup_timeout',
  'apiserver_qps',
  'apiserver_burst',
  'apiserver_max_inflight',
  'resyncperiod',
  'upstream',
])

function readOption(option: Directive, draft: Draft, notes: Notes): void {
  const { name, args } = option
  const [first = ''] = args
  if (silent.has(name)) return
  switch (name) {
    case 'pods':
      if (first === 'disabled' || first === 'insecure' || first === 'verified') draft.pods = first
      else notes.bad(option, `pods takes disabled, insecure or verified, not "${first}"`)
      return
    case 'endpoint_pod_names':
      draft.usesPodNames = true
      return
    case 'ttl':
      readTtl(option, draft, notes)
      return
    case 'namespaces':
      draft.namespaces = [...(draft.namespaces ?? []), ...args]
      return
    case 'labels':
    case 'namespace_labels':
      readSelector(option, draft, notes)
      return
    case 'noendpoints':
      draft.hasEndpoints = false
      return
    case 'ignore':
      if (first === 'empty_service') draft.ignoresEmptyServices = true
      else notes.bad(option, `ignore takes empty_service, not "${first}"`)
      return
    case 'zonal':
      draft.isZonal = true
      return
    case 'ptr_hostname_only':
      draft.pointersNeedHostname = true
      return
    case 'multicluster':
      draft.multiclusterZones = args.flatMap(zonesOfOrigin)
      return
    case 'fallthrough':
      draft.fallthrough = parseFallthrough(args)
      return
    default:
      notes.bad(option, `the kubernetes plugin has no option "${name}"`)
  }
}

function readTtl(option: Directive, draft: Draft, notes: Notes): void {
  const [text = ''] = option.args
  const ttl = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (ttl <= 3600) draft.ttl = ttl
  else notes.bad(option, `ttl takes 0 to 3600 seconds, not "${text}"`)
}

function readSelector(option: Directive, draft: Draft, notes: Notes): void {
  const text = option.args.join(' ')
  const test = parseLabelSelector(text)
  if (test === undefined) notes.bad(option, `"${text}" is not a label selector`)
  else if (option.name === 'labels') draft.selector = test
  else draft.namespaceSelector = test
}
