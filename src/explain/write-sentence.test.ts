/** The one sentence that says what is wrong. */
import { expect, test } from 'vitest'
import { explain, rawPod, rawService, rawSlice, twoNodes, twoPods } from '../../test/explain/explain-objects'

test('nothing wrong is said as such', () => {
  expect(explain([...twoNodes, ...twoPods, rawService()]).sentence).toBe(
    'shop/web: nothing is wrong in what the input shows.',
  )
})

test('of several errors, the first layer that is broken is told', () => {
  const slice = rawSlice('web-x', [])
  const { sentence } = explain([...twoNodes, ...twoPods, rawService(), slice])
  expect(sentence).toBe(
    'shop/web: port 80/TCP at 10.96.0.20 has no endpoint, because its slices hold no pod that it selects; connections are refused at once (1 more error above).',
  )
})

test('a warning alone is no break', () => {
  const unready = rawPod('web-2', '10.244.1.6', { isReady: false })
  expect(explain([...twoNodes, ...twoPods, unready, rawService()]).sentence).toBe(
    'shop/web: nothing is broken in what the input shows, but 1 pod is not ready and gets no traffic: web-2.',
  )
})

test('layers stand in the order a packet meets them, each with its status', () => {
  const { layers } = explain([...twoNodes, ...twoPods, rawService()])
  expect(layers.map(({ layer, status }) => `${layer} ${status}`)).toEqual([
    'name ok',
    'service ok',
    'slices ok',
    'pods ok',
    'rules ok',
    'conntrack skipped',
    'policy skipped',
    'traffic-policy ok',
  ])
})

test('every finding names an object, what shows it and what to do', () => {
  const spec = { type: 'NodePort', externalTrafficPolicy: 'Local', sessionAffinity: 'ClientIP' }
  const ports = [
    { name: 'http', port: 80, targetPort: 'http', nodePort: 30080 },
    { name: 'lost', port: 81, targetPort: 'lost' },
  ]
  const { findings } = explain([...twoNodes, ...twoPods.slice(1), rawService({ ...spec, ports })])
  expect(findings.length).toBeGreaterThan(4)
  for (const finding of findings) {
    expect(finding.object, finding.code).toBeDefined()
    expect(finding.hint, finding.code).toBeDefined()
    if (finding.code.startsWith('explain.')) expect(finding.evidence.length, finding.code).toBeGreaterThan(0)
  }
})
