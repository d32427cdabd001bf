/** A dump that sends to endpoints nobody has. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseSave } from '#compile/iptables/parse-save'
import { parseNftList } from '#compile/nftables/parse-list'
import type { EndpointSlice } from '#model/endpoint-slice'
import { findStaleEndpoints } from './find-stale-endpoints'

const saved = readFileSync(new URL('../../test/saves/kube-proxy.save', import.meta.url), 'utf8')
const { rulesets } = parseSave(saved, 'x')
const targets = [...new Set([...saved.matchAll(/--to-destination (\S+)/g)].map(([, target]) => String(target)))]

const meta = {
  kind: 'EndpointSlice',
  name: 'web-1',
  namespace: 'shop',
  labels: {},
  annotations: {},
  assumed: [],
  ownerReferences: [],
  origin: { file: 'x', line: 1 },
}

function sliceOf(place: string): EndpointSlice {
  const [address = '', port] = place.split(':')
  return {
    meta,
    addressType: 'IPv4',
    endpoints: [{ addresses: [address], conditions: {} }],
    ports: [{ name: '', port: Number(port), protocol: 'TCP' }],
  }
}

test('a dump of the same state has none', () => {
  expect(targets.length).toBeGreaterThan(3)
  expect(findStaleEndpoints({ rulesets }, targets.map(sliceOf))).toEqual([])
})

test('each target without an endpoint is told once, with the chain that sends to it', () => {
  const [gone = '', ...rest] = targets
  const findings = findStaleEndpoints({ rulesets }, rest.map(sliceOf))
  expect(findings.map((finding) => finding.code)).toEqual(['ruleset.stale-endpoint'])
  expect(findings[0]?.message).toMatch(new RegExp(`^KUBE-SEP-\\w+ sends to ${gone}, which`))
})

test('without any slice there is nothing to compare with', () => {
  expect(findStaleEndpoints({ rulesets }, [])).toEqual([])
})

test('rules of nftables mode are compared too', () => {
  const text = 'table ip kube-proxy {\n\tchain endpoint-A {\n\t\tmeta l4proto tcp dnat to 10.244.1.2:53\n\t}\n}\n'
  const findings = findStaleEndpoints({ rulesets: [], nft: parseNftList(text, 'x').ruleset }, [sliceOf('10.0.0.1:80')])
  expect(findings[0]?.message).toBe('endpoint-A sends to 10.244.1.2:53, which no EndpointSlice has')
})
