/** Verdicts of watched policies on the compatible path, as the audit pass left them. */
import Type from 'typebox'
import { Problem } from '#wire/problem'
import { policyDirections, printVerdict, VerdictRecord, verdictWords } from '#wire/verdict-record'
import type { App } from './app'
import type { Broker } from './broker'
import { readLimit, wholeNumber } from './read-limit'

const limitRule = { fallback: 100, least: 1, most: 500 }

/** Blank is as if absent, but for the namespace, where it asks for cluster-scoped policies. */
function wordOrBlank<const Word extends string>(words: readonly Word[]) {
  return Type.Optional(Type.Unsafe<Word | ''>({ type: 'string', enum: [...words, ''], description: 'blank: any' }))
}

export function addVerdictRoutes(app: App, { store }: Broker): void {
  app.get(
    '/audit/verdicts',
    {
      config: { access: 'read' },
      schema: {
        tags: ['compatible'],
        summary: 'What watched policies would have done, newest first',
        querystring: Type.Object({
          policy: Type.Optional(Type.String({ description: 'its name; blank: any' })),
          namespace: Type.Optional(Type.String({ description: 'of the policy; blank: cluster-scoped ones alone' })),
          verdict: wordOrBlank(verdictWords),
          direction: wordOrBlank(policyDirections),
          limit: wholeNumber('1 to 500; 100 when absent'),
        }),
        response: { 200: Type.Array(VerdictRecord), 400: Problem },
      },
    },
    async ({ query: { policy = '', namespace, verdict = '', direction = '', limit } }) => {
      const verdicts = await store.verdicts(
        {
          ...(policy !== '' && { policyName: policy }),
          ...(namespace !== undefined && { policyNamespace: namespace }),
          ...(verdict !== '' && { verdict }),
          ...(direction !== '' && { direction }),
        },
        readLimit(limit, limitRule),
      )
      return verdicts.map(printVerdict)
    },
  )
}
