/** What names of ports stand for in rules of egress: case C40. The map and the evaluator are held to one answer. */
import { describe, expect, test } from 'vitest'
import { ciliumVersions } from '#model/cilium-version'
import { cnp } from '../../../test/policy/ask-cilium'
import { askIn, client } from '../../../test/policy/cilium-cases'
import { pod, type Raw } from '../../../test/policy/policy-objects'

const toName = (more: Raw = {}, protocol = 'TCP'): Raw =>
  cnp('business/out', { ...client, egress: [{ ...more, toPorts: [{ ports: [{ port: 'web', protocol }] }] }] })
const toServer = { toEndpoints: [{ matchLabels: { app: 'server' } }] }
const other = (port: number): Raw =>
  pod('other/e', { app: 'e' }, { ip: '10.244.2.50', nodeName: 'node-b', ports: [{ name: 'web', containerPort: port }] })

describe.each(ciliumVersions)('C40: names of ports at egress in %s', (version) => {
  const ask = askIn(version)
  const egressOf = (map: readonly string[]): readonly string[] => map.filter((line) => line.includes('Egress'))

  test('without peers the number that some pod has is open to everybody, the world too', () => {
    const asked = ask([toName()])
    expect(egressOf(asked.map('A'))).toEqual(['Allow Egress 0 8080/TCP'])
    for (const [target, connection, expected] of [
      ['B', 'TCP 8080', 'allowed'],
      ['C', 'TCP 8080', 'allowed'],
      ['8.8.8.8', 'TCP 8080', 'allowed'],
      ['node-b', 'TCP 8080', 'allowed'],
      ['B', 'TCP 80', '133'],
      ['B', 'UDP 8080', '133'],
    ] as const)
      expect([target, connection, asked.at('egress', 'A', target, connection)]).toEqual([target, connection, expected])
  })

  test('of selected peers each has the number, whether or not its own containers name it', () => {
    const asked = ask([toName(toServer)])
    expect(egressOf(asked.map('A'))).toEqual(['Allow Egress 1002 8080/TCP', 'Allow Egress 1003 8080/TCP'])
    expect(asked.at('egress', 'A', 'C', 'TCP 8080')).toBe('allowed')
    expect(asked.at('egress', 'A', 'D', 'TCP 8080')).toBe('133')
  })

  test('a name that two pods give different numbers opens nothing, and that is told', () => {
    const asked = ask([toName(toServer), other(9090)])
    expect(egressOf(asked.map('A'))).toEqual([])
    expect(asked.at('egress', 'A', 'B', 'TCP 8080')).toBe('133')
    expect(asked.at('egress', 'A', 'B', 'TCP 9090')).toBe('133')
    const told = asked.findings.filter(({ code }) => code === 'policy.port-name-disputed')
    expect(told.map(({ message, path }) => [message, path])).toEqual([
      [
        'pods give the name web to different ports (TCP 8080 in business/b and TCP 9090 in other/e), so that it stands for none in rules of egress',
        'spec.egress[0]',
      ],
    ])
    const [why] = asked.answer('egress', 'A', 'B', 'TCP 8080').others
    expect(why?.why).toContain('pods give the name web to different ports')
  })

  test('ingress asks the pod itself, whatever other pods name', () => {
    const policy = cnp('business/in', {
      endpointSelector: { matchLabels: { app: 'server' } },
      ingress: [{ toPorts: [{ ports: [{ port: 'web', protocol: 'TCP' }] }] }],
    })
    const asked = ask([policy, other(9090)])
    expect(asked.at('ingress', 'A', 'B', 'TCP 8080')).toBe('allowed')
    expect(asked.at('ingress', 'A', 'B', 'TCP 9090')).toBe('133')
    expect(asked.findings.map(({ code }) => code)).not.toContain('policy.port-name-disputed')
  })

  test('another protocol, a pod of the node’s network and one that has ended do not count', () => {
    const udp = pod(
      'other/e',
      { app: 'e' },
      { ip: '10.244.2.50', ports: [{ name: 'web', containerPort: 53, protocol: 'UDP' }] },
    )
    const onNode = pod(
      'other/f',
      {},
      { hostNetwork: true, nodeName: 'node-b', ports: [{ name: 'web', containerPort: 9091 }] },
    )
    expect(egressOf(ask([toName(), udp, onNode]).map('A'))).toEqual(['Allow Egress 0 8080/TCP'])
    expect(egressOf(ask([toName({}, 'UDP'), udp]).map('A'))).toEqual(['Allow Egress 0 53/UDP'])
    const ended = pod('other/g', {}, { phase: 'Succeeded', ports: [{ name: 'web', containerPort: 9092 }] })
    expect(egressOf(ask([toName(), ended]).map('A'))).toEqual(['Allow Egress 0 8080/TCP'])
  })
})
