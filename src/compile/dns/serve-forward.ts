/** The forward plugin: names that leave the cluster, which nobody in it can answer for. */
import type { Directive } from './corefile'
import { foldName, isWithin, zonesOfOrigin } from './domain-name'
import type { Plugin } from './plugin'
import { emptyReply } from './record'

/** `grpc` and the older `proxy` take the same arguments. */
export function serveForward({ name, args, block }: Directive): Plugin {
  const [from = '.', ...to] = args
  const [zone = '.'] = zonesOfOrigin(from)
  const except = block
    .filter((option) => option.name === 'except')
    .flatMap((option) => option.args.flatMap(zonesOfOrigin))
  return {
    name,
    serve: (question, next) => {
      const folded = foldName(question.name)
      if (!isWithin(folded, zone) || except.some((other) => isWithin(folded, other))) return next(question)
      const reply = emptyReply('NOERROR', name, `forwarded to ${describeTargets(to)}`)
      return { ...reply, forwarded: { name: question.name, to } }
    },
  }
}

function describeTargets(to: readonly string[]): string {
  const named = to.map((target) => (target === '/etc/resolv.conf' ? 'the node’s nameservers' : target))
  return named.length === 0 ? 'nobody: the Corefile names no target' : named.join(', ')
}
