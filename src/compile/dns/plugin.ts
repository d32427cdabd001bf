/** A plugin of CoreDNS: it answers a question, or asks the next one. */
import type { Question, Reply } from './record'

export type Handler = (question: Question) => Reply

export type Plugin = { readonly name: string; readonly serve: (question: Question, next: Handler) => Reply }

/** The handler that asks the first plugin; `last` answers when none of them did. */
export function chainPlugins(plugins: readonly Plugin[], last: Handler): Handler {
  return plugins.reduceRight<Handler>((next, plugin) => (question) => plugin.serve(question, next), last)
}
