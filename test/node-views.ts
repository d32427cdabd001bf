/** What agents may tell of themselves, for the tests and benches of metrics. */
import { fallbackReasons } from '#compile/traffic-policy/reasons'
import type { DirectionView, NodeView } from '#enforce/node-view'

const directions = ['ingress', 'egress'] as const

/** As many interfaces with as many rules both ways; the counts are all different. */
export function bigView(interfaces: number, rules: number): NodeView {
  let count = 0n
  const next = (): bigint => {
    count += 7n
    return count
  }
  const bothOf = (): readonly DirectionView[] =>
    directions.map((direction) => ({
      direction,
      installed: {
        policyNamespace: 'tenant-of-the-bench',
        policyName: 'a-policy-with-many-rules',
        policyUid: '9d4c2f0e-6d0b-4f5e-9d0e-2f6f7f5a1b2c',
        generation: 7,
        rules: Array.from({ length: rules }, (_, at) => ({
          name: `rule-number-${at}`,
          action: at % 2 === 0 ? ('allow' as const) : ('deny' as const),
          hits: next(),
          bytes: next(),
        })),
      },
      fallbacks: Object.fromEntries(fallbackReasons.map((reason) => [reason, next()])) as NonNullable<
        DirectionView['fallbacks']
      >,
    }))
  return {
    node: 'node-of-the-bench',
    mode: 'enforce',
    counterReadErrors: 0,
    interfaces: Array.from({ length: interfaces }, (_, at) => ({
      kind: 'VPCAttachment' as const,
      namespace: 'tenant-of-the-bench',
      attachment: `workload-${at}`,
      vpc: '1x9',
      interface: `G0000001x9${String(at).padStart(3, '0')}H`,
      directions: bothOf(),
    })),
  }
}
