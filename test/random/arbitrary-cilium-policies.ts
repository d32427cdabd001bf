/** Random policies of the three kinds that Cilium reads, for the example world of its cases. */
import fc from 'fast-check'
import { ccnp, cnp } from '../policy/ask-cilium'
import { networkPolicy, type Raw } from '../policy/policy-objects'

const labels = fc.constantFrom<Raw>({}, { app: 'client' }, { app: 'server' }, { ver: 'v2' })
const selector = labels.map((matchLabels): Raw => (Object.keys(matchLabels).length === 0 ? {} : { matchLabels }))

const peers = (side: 'from' | 'to'): fc.Arbitrary<Raw> =>
  fc.oneof(
    fc.constant({}),
    fc.array(selector, { maxLength: 2 }).map((list) => ({ [`${side}Endpoints`]: list })),
    fc.constantFrom('all', 'world', 'cluster', 'host', 'remote-node').map((one) => ({ [`${side}Entities`]: [one] })),
    fc.constantFrom('203.0.113.0/24', '10.0.0.0/8', '0.0.0.0/0').map((one) => ({ [`${side}CIDR`]: [one] })),
  )

const port = fc.record({
  port: fc.constantFrom('0', '80', '8080', 'web'),
  protocol: fc.constantFrom('TCP', 'UDP', 'ANY'),
})
const toPorts = fc.oneof(
  fc.constant({}),
  fc.array(port, { minLength: 1, maxLength: 2 }).map((ports) => ({ toPorts: [{ ports }] })),
)
export const ciliumElement = (side: 'from' | 'to'): fc.Arbitrary<Raw> =>
  fc.tuple(peers(side), toPorts).map(([a, b]) => ({ ...a, ...b }))

const spec = fc
  .record({
    endpointSelector: selector,
    section: fc.constantFrom('ingress', 'ingressDeny', 'egress', 'egressDeny'),
    from: fc.array(ciliumElement('from'), { minLength: 1, maxLength: 2 }),
    to: fc.array(ciliumElement('to'), { minLength: 1, maxLength: 2 }),
    closes: fc.option(fc.boolean(), { nil: undefined }),
  })
  .map(({ endpointSelector, section, from, to, closes }): Raw => {
    const direction = section.replace('Deny', '')
    return {
      endpointSelector,
      [section]: direction === 'ingress' ? from : to,
      ...(closes !== undefined && { enableDefaultDeny: { [direction]: closes } }),
    }
  })

export const ciliumPolicies = fc
  .array(fc.tuple(spec, fc.constantFrom('cnp', 'ccnp', 'np')), { maxLength: 4 })
  .map((list) =>
    list.map(([one, kind], index): Raw => {
      if (kind === 'ccnp') return ccnp(`p${index}`, one)
      if (kind === 'cnp') return cnp(`business/p${index}`, one)
      return networkPolicy(`business/p${index}`, {
        podSelector: one.endpointSelector,
        ingress: [{ from: [{ podSelector: {} }] }],
      })
    }),
  )
