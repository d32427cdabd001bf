/** Flows of Hubble’s in and out: what a walk would be seen as, and recorded packets held to the walk. Cases H* of the sheet by their ids. */
import { describe, expect, test } from 'vitest'
import { hubbleRows, printHubbleRows } from '#flows/print-hubble'
import { readHubbleFile } from '#flows/read-flows-file'
import { prepareCilium } from '#trace/cilium/cilium-net'
import { walkCilium } from '#trace/cilium/walk-cilium'
import { askMaps } from '../../../test/cilium/ask-maps'
import { cnp } from '../../../test/policy/ask-cilium'
import { node, type Raw } from '../../../test/policy/policy-objects'
import { askOfFlow } from './ask-of-flow'
import { checkFlow } from './check-flow'
import { ciliumNames, plainNames } from './name-ends'

const nodes = [{ ...node('node-b', '192.168.1.11'), spec: { podCIDRs: ['10.244.2.0/24'] } }]
const toServer = (rule: Raw): Raw =>
  cnp('business/server', { endpointSelector: { matchLabels: { app: 'server' } }, ...rule })
const fromClient = { fromEndpoints: [{ matchLabels: { app: 'client' } }] }
const port8080 = { toPorts: [{ ports: [{ port: '8080', protocol: 'TCP' }] }] }
/** P2 of the sheet. */
const p2 = toServer({ ingress: [{ ...fromClient, ...port8080 }] })

function netOf(objects: readonly Raw[]) {
  const { world } = askMaps([...nodes, ...objects]).maps
  return prepareCilium(world.cluster, { slices: world.slices })
}

type Net = ReturnType<typeof netOf>

const ips = { a: '10.244.1.10', b: '10.244.1.20', c: '10.244.2.30' }

/** A line as `hubble observe -o json` prints it. */
function line(from: keyof typeof ips, to: keyof typeof ips, flow: Raw = {}): string {
  const end = (name: string): Raw => ({ namespace: 'business', pod_name: name })
  const l4 = { TCP: { source_port: 43210, destination_port: 8080, flags: { SYN: true } } }
  const told = { IP: { source: ips[from], destination: ips[to], ipVersion: 'IPv4' }, l4, Type: 'L3_L4' }
  return JSON.stringify({ flow: { ...told, source: end(from), destination: end(to), ...flow }, node_name: 'node-a' })
}

function recorded(text: string) {
  const { value, findings } = readHubbleFile(text, 'flows.json')
  return { flows: value, codes: findings.map(({ code }) => code) }
}

function seen(net: Net, text: string, isReplyWanted = false) {
  const [flow] = recorded(text).flows
  const question = flow === undefined ? undefined : askOfFlow(net.cluster, flow)
  if (flow === undefined || question === undefined) throw new Error(`no packet in ${text}`)
  const walk = walkCilium(net, { ...question, ...(isReplyWanted && { isReplyWanted }) })
  const rows = hubbleRows(walk, { describe: ciliumNames(net), time: '2026-01-01T00:00:00Z' })
  return { walk, rows, check: checkFlow(flow, { walk, rows, file: 'flows.json' }) }
}

const denied = { verdict: 'DROPPED', drop_reason_desc: 'POLICY_DENIED', event_type: { type: 1, sub_type: 133 } }

describe('what a walk would be seen as', () => {
  test('H1: a policy of defaults drops 133, with a verdict of policy before it', () => {
    const { rows } = seen(netOf([p2]), line('c', 'b', denied))
    const [verdict, drop] = rows.slice(-2).map(({ flow }) => flow)
    expect(verdict).toMatchObject({ verdict: 'DROPPED', event_type: { type: 5 }, traffic_direction: 'INGRESS' })
    expect(drop).toMatchObject({
      verdict: 'DROPPED',
      drop_reason_desc: 'POLICY_DENIED',
      event_type: { type: 1, sub_type: 133 },
      traffic_direction: 'INGRESS',
      source: { identity: 1003, namespace: 'business', pod_name: 'c' },
      destination: { identity: 1002, pod_name: 'b' },
    })
  })

  test('H2: a deny rule drops 181', () => {
    const deny = toServer({ ingressDeny: [{ ...fromClient, ...port8080 }], enableDefaultDeny: { ingress: false } })
    const { rows } = seen(netOf([deny]), line('a', 'b', denied))
    expect(rows.at(-1)?.flow).toMatchObject({
      verdict: 'DROPPED',
      drop_reason_desc: 'POLICY_DENY',
      event_type: { type: 1, sub_type: 181 },
    })
  })

  test('H3: a rule of layer 7 redirects to the proxy, whose port is told', () => {
    const http = { toPorts: [{ ports: [{ port: '8080', protocol: 'TCP' }], rules: { http: [{ method: 'GET' }] } }] }
    const { rows } = seen(netOf([toServer({ ingress: [{ ...fromClient, ...http }] })]), line('a', 'b', denied))
    const verdict = rows.find(({ flow }) => flow.verdict === 'REDIRECTED')?.flow
    expect(verdict?.event_type).toEqual({ type: 5 })
    expect(verdict?.proxy_port).toBeGreaterThanOrEqual(10_000)
  })

  test('P27: in audit mode the verdict is AUDIT, of a match with none, and the packet goes on', () => {
    const config = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'cilium-config', namespace: 'kube-system' },
      data: { 'policy-audit-mode': 'true' },
    }
    const { rows } = seen(netOf([toServer({ ingress: [{}] }), config]), line('a', 'b', { verdict: 'AUDIT' }))
    const verdict = rows.find(({ flow }) => flow.verdict === 'AUDIT')?.flow
    expect([verdict?.event_type, verdict?.traffic_direction, verdict?.policy_match_type]).toEqual([
      { type: 5 },
      'INGRESS',
      undefined,
    ])
    expect(rows.at(-1)?.flow).toMatchObject({ verdict: 'FORWARDED', trace_observation_point: 'TO_ENDPOINT' })
  })

  test('directions and answers are told where Hubble knows them', () => {
    const { walk, rows } = seen(netOf([p2]), line('a', 'b', { verdict: 'FORWARDED' }), true)
    expect(walk.request.verdict.kind).toBe('allowed')
    const told = rows.map(({ flow }) =>
      [flow.trace_observation_point ?? `policy ${flow.policy_match_type}`, flow.traffic_direction, flow.is_reply].join(
        ' ',
      ),
    )
    expect(told).toEqual([
      'FROM_ENDPOINT TRAFFIC_DIRECTION_UNKNOWN ',
      'policy 4 EGRESS false',
      'policy 2 INGRESS false',
      'TO_ENDPOINT INGRESS false',
      'FROM_ENDPOINT TRAFFIC_DIRECTION_UNKNOWN ',
      'TO_ENDPOINT EGRESS true',
    ])
  })

  test('what is printed is read back as the same packets, each of them as it was', () => {
    const net = netOf([p2])
    const { rows } = seen(net, line('c', 'b', denied))
    const { flows, codes } = recorded(printHubbleRows(rows))
    expect(codes).toEqual([])
    expect(flows).toHaveLength(rows.length)
    for (const text of printHubbleRows(rows).trim().split('\n')) {
      const { check } = seen(net, text)
      expect([check.agrees, check.findings]).toEqual([true, []])
    }
  })
})

describe('a recorded packet against the objects', () => {
  test('the same drop for the same reason is no news', () => {
    const { check } = seen(netOf([p2]), line('c', 'b', denied))
    expect(check).toEqual({ agrees: true, computed: 'DROPPED POLICY_DENIED', findings: [] })
  })

  const errorOf = (type: number, code: number, more: Raw): string =>
    line('a', 'b', { l4: { ICMPv4: { type, code } }, ...more })

  test('an error that fares otherwise is open, as the record does not tell what it is about', () => {
    const net = netOf([p2])
    const passed = seen(net, errorOf(3, 3, { verdict: 'FORWARDED', trace_observation_point: 'TO_ENDPOINT' }))
    expect([passed.check.computed, passed.check.findings.map(({ code }) => code)]).toEqual([
      'unknown',
      ['flow-check.open'],
    ])
    const dropped = seen(net, errorOf(11, 0, { verdict: 'DROPPED', drop_reason_desc: 'POLICY_DENIED' }))
    expect([dropped.check.agrees, dropped.check.computed]).toEqual([true, 'DROPPED POLICY_DENIED'])
  })

  test('a code of ICMP is read, printed and named: only fragmentation needed passes every policy', () => {
    const net = netOf([p2])
    const needed = seen(net, errorOf(3, 4, { verdict: 'FORWARDED', trace_observation_point: 'TO_ENDPOINT' }))
    expect([needed.check.agrees, needed.walk.request.verdict.kind]).toEqual([true, 'allowed'])
    const port = seen(net, errorOf(3, 3, { verdict: 'DROPPED', drop_reason_desc: 'POLICY_DENIED' }))
    expect(port.check.agrees).toBe(true)
    expect(port.rows.at(-1)?.flow).toMatchObject({
      l4: { ICMPv4: { type: 3, code: 3 } },
      Summary: 'ICMPv4 DestinationUnreachable(Port)',
    })
    const unreachable = seen(net, errorOf(3, 0, { verdict: 'DROPPED', drop_reason_desc: 'POLICY_DENIED' }))
    expect(unreachable.rows.at(-1)?.flow).toMatchObject({
      l4: { ICMPv4: { type: 3 } },
      Summary: 'ICMPv4 DestinationUnreachable(Net)',
    })
    expect(unreachable.check.agrees).toBe(true)
  })

  test('a drop that the objects do not imply is told, with the place in the file', () => {
    const { check } = seen(netOf([]), line('c', 'b', denied))
    expect(check.agrees).toBe(false)
    expect(check.findings).toMatchObject([{ code: 'flow-check.let-through', origin: { file: 'flows.json', line: 1 } }])
  })

  test('a drop for another reason is told', () => {
    const { check } = seen(netOf([p2]), line('c', 'b', { ...denied, drop_reason_desc: 'POLICY_DENY' }))
    expect(check.findings.map(({ code }) => code)).toEqual(['flow-check.other-reason'])
  })

  test('a number alone tells the reason, as before 1.13', () => {
    const { check } = seen(netOf([p2]), line('c', 'b', { verdict: 'DROPPED', drop_reason: 133 }))
    expect(check.agrees).toBe(true)
  })

  test('what was let through at a place before its drop agrees, and what got beyond it does not', () => {
    const at = (point: string) =>
      seen(netOf([p2]), line('c', 'b', { verdict: 'FORWARDED', trace_observation_point: point })).check
    expect(at('FROM_ENDPOINT')).toMatchObject({ agrees: true, computed: 'FORWARDED, later DROPPED POLICY_DENIED' })
    expect(at('TO_ENDPOINT').findings.map(({ code }) => code)).toEqual(['flow-check.dropped'])
  })

  test('a pod whose labels were others then is told', () => {
    const labels = ['k8s:app=client', 'k8s:io.kubernetes.pod.namespace=business']
    const source = { namespace: 'business', pod_name: 'c', labels }
    const { check } = seen(netOf([p2]), line('c', 'b', { ...denied, source }))
    expect(check.findings.map(({ code }) => code)).toEqual(['flow-check.other-identity'])
    expect(check.findings[0]?.message).toContain('k8s:app=client then')
  })

  test('a pod that is gone is told, and the packet is walked by its address', () => {
    const source = { namespace: 'business', pod_name: 'gone', identity: 4711 }
    const { check } = seen(netOf([p2]), line('c', 'b', { ...denied, source }))
    expect(check.findings.map(({ code }) => code)).toEqual(['flow-check.other-holder'])
  })

  test('an address that the node took for the world has identity 2 in the record alone', () => {
    const { check } = seen(netOf([p2]), line('c', 'b', { ...denied, source: { identity: 2 } }))
    expect(check.findings.map(({ message }) => message)).toEqual([
      'TCP 10.244.2.30:43210 → 10.244.1.20:8080: the source had identity 2, where the objects imply 1003',
    ])
  })
})

test('without Cilium the ends of a flow have the labels that it would give them', () => {
  const { world } = askMaps([...nodes]).maps
  const describeEnd = plainNames(world.cluster)
  const labels = ciliumNames(netOf([]))(ips.c, 'node-b').labels
  expect(describeEnd(ips.c, 'node-b')).toMatchObject({ namespace: 'business', pod_name: 'c', labels })
  expect(describeEnd('8.8.8.8', undefined)).toEqual({ labels: ['reserved:world'] })
  expect(describeEnd('192.168.1.11', 'node-a')).toEqual({ labels: ['reserved:remote-node'] })
})

describe('files of flows', () => {
  test('wrapped and bare flows, arrays, and what is no packet', () => {
    const bare = JSON.stringify(JSON.parse(line('a', 'b', { verdict: 'FORWARDED' })).flow)
    const l7 = line('a', 'b', { verdict: 'FORWARDED', Type: 'L7', l7: { http: {} } })
    const { flows, codes } = recorded(
      `[${line('a', 'b', { verdict: 'FORWARDED' })},${bare}]\n${l7}\n{"lost_events":{}}\n`,
    )
    expect(flows).toHaveLength(2)
    expect(codes).toEqual(['flows.passed-over'])
  })

  test('a flow without addresses is told, and a line that is cut short', () => {
    const { flows, codes } = recorded(
      `{"flow":{"verdict":"DROPPED","l4":{"TCP":{"destination_port":1}},"source":{}}}\n${line('a', 'b', denied).slice(0, 90)}`,
    )
    expect([flows, codes]).toEqual([[], ['flows.not-a-flow', 'flows.cut-short']])
  })

  test('an answer is known by the request that it answers, or by its flags', () => {
    const request = line('a', 'b', { verdict: 'FORWARDED', is_reply: false })
    const l4 = { TCP: { source_port: 8080, destination_port: 43210, flags: { ACK: true } } }
    const answer = line('b', 'a', { verdict: 'FORWARDED', l4, trace_observation_point: 'FROM_ENDPOINT' })
    expect(recorded(`${request}\n${answer}`).flows.map(({ isReply }) => isReply)).toEqual([false, true])
    expect(recorded(answer).flows[0]?.isReply).toBeUndefined()
    const both = { TCP: { ...l4.TCP, flags: { SYN: true, ACK: true } } }
    const [flow] = recorded(line('b', 'a', { verdict: 'FORWARDED', l4: both })).flows
    expect(flow?.isReply).toBe(true)
    const net = netOf([p2])
    expect(seen(net, line('b', 'a', { verdict: 'FORWARDED', l4: both, is_reply: true })).check.agrees).toBe(true)
  })
})
