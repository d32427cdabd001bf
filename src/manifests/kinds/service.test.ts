import { describe, expect, test } from 'vitest'
import { buildFrom, type Raw, rawService } from '../support/raw-objects'

const one = (spec: Raw, rest: Raw = {}) => buildFrom([rawService('web', spec, rest)])

describe('defaults of a Service', () => {
  test('what is left out is what the API server would fill in', () => {
    const { service, problems } = one({ clusterIP: '10.96.0.20', selector: { app: 'web' } })
    expect(problems).toEqual([])
    expect(service('web')).toMatchObject({
      type: 'ClusterIP',
      clusterIPs: ['10.96.0.20'],
      ipFamilies: ['ipv4'],
      ports: [{ name: '', protocol: 'TCP', port: 80, targetPort: 80, nodePort: 0 }],
      externalTrafficPolicy: 'Cluster',
      internalTrafficPolicy: 'Cluster',
      healthCheckNodePort: 0,
      publishNotReadyAddresses: false,
      selector: { app: 'web' },
    })
    expect(service('web')).not.toHaveProperty('affinitySeconds')
    expect(service('web').meta.assumed).toEqual([])
  })

  test('ClientIP affinity lasts three hours unless told', () => {
    expect(one({ sessionAffinity: 'ClientIP' }).service('web').affinitySeconds).toBe(10800)
    const told = { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } } }
    expect(one(told).service('web').affinitySeconds).toBe(600)
  })

  test('an empty selector is none', () => {
    expect(one({ selector: {} }).service('web')).not.toHaveProperty('selector')
  })

  test('clusterIPs follows clusterIP, and the families follow the addresses', () => {
    const dual = one({ clusterIP: '10.96.0.20', clusterIPs: ['10.96.0.20', 'fd00:10:96:0::20'] }).service('web')
    expect(dual).toMatchObject({ clusterIPs: ['10.96.0.20', 'fd00:10:96::20'], ipFamilies: ['ipv4', 'ipv6'] })
    expect(one({ clusterIP: 'fd00::1' }).service('web').ipFamilies).toEqual(['ipv6'])
  })

  test('a headless Service keeps None and gets no address', () => {
    expect(one({ clusterIP: 'None', selector: { a: 'b' } }).service('web')).toMatchObject({
      clusterIPs: ['None'],
      ipFamilies: ['ipv4'],
    })
  })

  test('a headless Service without a selector has both families, as the API server decides', () => {
    expect(one({ clusterIP: 'None' }).service('web').ipFamilies).toEqual(['ipv4', 'ipv6'])
  })

  test('an ExternalName has neither address nor family', () => {
    expect(one({ type: 'ExternalName', externalName: 'www.example.org', ports: [] })).toMatchObject({ problems: [] })
    expect(one({ type: 'ExternalName', externalName: 'www.example.org' }).service('web')).toMatchObject({
      clusterIPs: [],
      ipFamilies: [],
      externalName: 'www.example.org',
    })
  })

  test('load balancer entries are VIP unless told, and source ranges are trimmed', () => {
    const spec = { type: 'LoadBalancer', loadBalancerSourceRanges: [' 203.0.113.0/25'] }
    const status = {
      loadBalancer: { ingress: [{ ip: '198.51.100.1' }, { hostname: 'lb.example.org', ipMode: 'Proxy' }] },
    }
    expect(one(spec, { status }).service('web')).toMatchObject({
      loadBalancerSourceRanges: ['203.0.113.0/25'],
      loadBalancerIngress: [
        { ip: '198.51.100.1', ipMode: 'VIP' },
        { hostname: 'lb.example.org', ipMode: 'Proxy' },
      ],
    })
  })
})

describe('ports of a Service', () => {
  const ports = (...entries: unknown[]) => one({ clusterIP: '10.96.0.20', ports: entries })
  const first = (entry: unknown) => ports(entry).service('web').ports[0]

  test.each([
    [{ port: 80 }, 80],
    [{ port: 80, targetPort: 0 }, 80],
    [{ port: 80, targetPort: '' }, 80],
    [{ port: 80, targetPort: null }, 80],
    [{ port: 80, targetPort: 8080 }, 8080],
    [{ port: 80, targetPort: 'http' }, 'http'],
  ])('%j leads to %s', (entry, target) => {
    expect(first(entry)?.targetPort).toBe(target)
    expect(ports(entry).problems).toEqual([])
  })

  test('a targetPort of digits is that number, with a finding', () => {
    expect(first({ port: 80, targetPort: '8080' })?.targetPort).toBe(8080)
    expect(ports({ port: 80, targetPort: '8080' }).findings).toMatchObject([
      { code: 'service.target-port-digits', path: 'spec.ports[0].targetPort', hint: 'write it without quotes' },
      { code: 'cluster.assumed-nodes' },
    ])
  })

  test.each([
    [
      '"http" for port',
      { port: 'http' },
      'spec.ports[1].port',
      '"http" is not a port number from 1 to 65535; it is left out',
    ],
    ['null for port', { port: null }, 'spec.ports[1].port', 'the field is missing; this port is left out'],
    ['no port', { name: 'x' }, 'spec.ports[1].port', 'the field is missing; this port is left out'],
    [
      'a port too large',
      { port: 70000 },
      'spec.ports[1].port',
      '70000 is not a port number from 1 to 65535; it is left out',
    ],
    ['half a port', { port: 80.5 }, 'spec.ports[1].port', '80.5 is not a port number from 1 to 65535; it is left out'],
    [
      'an unknown protocol',
      { port: 81, protocol: 'TLS' },
      'spec.ports[1].protocol',
      '"TLS" is none of TCP, UDP, SCTP; this port is left out',
    ],
    [
      'a targetPort that is a map',
      { port: 81, targetPort: {} },
      'spec.ports[1].targetPort',
      'a map is neither a port number nor a port name; this port is left out',
    ],
    [
      'a targetPort too large',
      { port: 81, targetPort: '99999' },
      'spec.ports[1].targetPort',
      '"99999" is neither a port number nor a port name; this port is left out',
    ],
  ])('%s: the port is left out with a finding, and the other one stays', (_, entry, path, message) => {
    const { service, findings } = ports({ name: 'good', port: 80 }, { name: 'bad', ...entry })
    expect(service('web').ports).toMatchObject([{ name: 'good', port: 80 }])
    expect(findings[0]).toMatchObject({
      severity: 'error',
      path,
      message,
      origin: { file: 'f.json', index: 'items[0]' },
    })
  })

  test('an entry that is no map is told', () => {
    expect(ports({ port: 80 }, 'https').findings[0]).toMatchObject({
      path: 'spec.ports[1]',
      message: '"https" stands where a map is wanted; it is left out',
    })
  })

  test('text that means a number, and another spelling of a protocol, are read as meant', () => {
    const { service, problems } = ports({ port: '80', protocol: 'udp' })
    expect(service('web').ports).toMatchObject([{ port: 80, protocol: 'UDP' }])
    expect(problems).toEqual(['manifest.wrong-type', 'manifest.bad-value'])
  })

  test.each([
    ['two without names', [{ port: 80 }, { port: 81 }], 'port 80/TCP has no name'],
    [
      'two of one name',
      [
        { name: 'a', port: 80 },
        { name: 'a', port: 81 },
      ],
      'two ports are named "a"',
    ],
    [
      'two of one number',
      [
        { name: 'a', port: 80 },
        { name: 'b', port: 80 },
      ],
      'two ports are 80/TCP',
    ],
  ])('%s are told and kept', (_, entries, message) => {
    const { service, find } = ports(...entries)
    expect(service('web').ports).toHaveLength(2)
    expect(find('service.ports-alike').message).toContain(message)
  })

  test('one number over two protocols is fine', () => {
    expect(ports({ name: 'dns', port: 53, protocol: 'UDP' }, { name: 'dns-tcp', port: 53 }).problems).toEqual([])
  })

  test('a clusterIP of the wrong type is told once, and none is assumed', () => {
    const { service, findings } = buildFrom([rawService('web', { clusterIP: 10 })])
    expect(service('web').clusterIPs).toEqual([])
    expect(findings.filter(({ path }) => path === 'spec.clusterIP').map(({ message }) => message)).toEqual([
      '10 stands where an IP address is wanted; it is left out',
    ])
  })

  test('a Service without ports is told, unless it is headless', () => {
    expect(one({ clusterIP: '10.96.0.20', ports: null }).problems).toEqual(['service.no-ports'])
    expect(one({ clusterIP: 'None', ports: [] }).problems).toEqual([])
  })
})

describe('a Service with bad fields', () => {
  test.each([
    [
      '010.0.0.1',
      'has a part with a leading zero, which some programs read as octal',
      'write 10.0.0.1 if that is meant',
    ],
    ['::ffff:10.0.0.1', 'is an IPv4 address written as IPv6', 'write 10.0.0.1'],
  ])('the ClusterIP %s is left out, and no other is chosen for it', (ip, message, hint) => {
    const { service, findings } = one({ clusterIP: ip })
    expect(service('web')).toMatchObject({ clusterIPs: [], meta: { assumed: [] } })
    expect(findings[0]).toMatchObject({
      code: 'manifest.bad-address',
      path: 'spec.clusterIP',
      message: `"${ip}" ${message}; the address is left out`,
      hint,
    })
  })

  test('a range with host bits is read as the kernel would', () => {
    const { service, find } = one({ loadBalancerSourceRanges: ['10.0.0.7/8', '10.0.0.0/33', '10.0.0.0'] })
    expect(service('web').loadBalancerSourceRanges).toEqual(['10.0.0.0/8'])
    expect(find('manifest.host-bits')).toMatchObject({
      severity: 'warning',
      path: 'spec.loadBalancerSourceRanges[0]',
      hint: 'write 10.0.0.0/8',
    })
    expect(find('manifest.bad-cidr')).toMatchObject({ path: 'spec.loadBalancerSourceRanges[1]' })
  })

  test('a selector that cannot be read in full does not become a wider one', () => {
    const { service, findings } = one({ selector: { app: 'web', track: ['a'] } })
    expect(service('web')).not.toHaveProperty('selector')
    expect(findings.map(({ path }) => path)).toEqual(expect.arrayContaining(['spec.selector.track', 'spec.selector']))
  })

  test('numbers and truth values in a selector are read as their text', () => {
    const { service, problems } = one({ selector: { version: 2, canary: true } })
    expect(service('web').selector).toEqual({ version: '2', canary: 'true' })
    expect(problems).toEqual(['manifest.bad-label', 'manifest.bad-label'])
  })

  test('addresses and families that disagree: the addresses count', () => {
    const { service, problems } = one({ clusterIP: '10.96.0.20', ipFamilies: ['IPv6'] })
    expect(service('web').ipFamilies).toEqual(['ipv4'])
    expect(problems).toEqual(['service.family-mismatch'])
  })

  test('spec of the wrong type leaves a Service with nothing in it', () => {
    const { service, problems } = buildFrom([
      { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace: 'shop' }, spec: 'x' },
    ])
    expect(service('web').ports).toEqual([])
    expect(problems).toContain('manifest.wrong-type')
  })

  test.each(['type', 'sessionAffinity', 'externalTrafficPolicy', 'internalTrafficPolicy', 'ipFamilyPolicy'])(
    'an unknown %s is told, and the default counts',
    (field) => {
      expect(one({ [field]: 'Sideways' }).findings[0]).toMatchObject({
        code: 'manifest.bad-value',
        path: `spec.${field}`,
      })
    },
  )
})
