/** `NS/NAME` as commands take it, and what to say when nothing has that name. */
import { Failure } from '#base/failure'
import { compareText, listOf } from '#base/text'
import type { Cluster } from '#model/cluster'

/** A name without a namespace is in the one given, `default` unless said; `svc/NAME` is a name too, as kubectl has it. */
export function qualify(text: string, namespace = 'default'): string {
  const parts = text.replace(/^(?:svc|services?)\//, '').split('/')
  if (parts.length > 2 || parts.some((part) => part === '')) {
    throw new Failure('usage.bad-argument', `"${text}" is not a Service's name; write NAMESPACE/NAME`)
  }
  return parts.length === 2 ? parts.join('/') : `${namespace}/${parts.join('')}`
}

export function requireService(cluster: Cluster, key: string): void {
  if (cluster.services.has(key)) return
  const [namespace = '', name = ''] = key.split('/')
  const names = [...cluster.services.keys()].sort(compareText)
  const near = names.filter((other) => other.endsWith(`/${name}`) || other.startsWith(`${namespace}/`))
  const known =
    near.length > 0
      ? `there are ${listOf(near)}`
      : `the input has ${names.length} Services, none in namespace ${namespace}`
  throw new Failure('usage.not-found', `no Service is named ${key}: ${known}`)
}
