/** Chain names: the cases H1 to H7 that are about iptables, and the way back from a name. */
import { describe, expect, test } from 'vitest'
import { portOf, serviceOf } from '../../../test/golden/objects'
import { chainOwner, endpointChain, indexChainOwners, isServiceChain, serviceChains } from './chain-names'

describe('kube-proxy names', () => {
  test.each([
    ['H1', 'shop/web', 'tcp', 'E3PXEPMWAWIUT6ZV'],
    ['H2', 'shop/web', 'udp', 'PSGTAS5VFF3ESZ4D'],
    ['H3', 'shop/web:http', 'tcp', '67NZLRHBNDSAWJRO'],
    ['H6', 'shop/voip:sig', 'sctp', 'ROI6OQIFQ6MZCRSX'],
    ['', 'default/kubernetes:https', 'tcp', 'NPX46M4PTMTKRN6Y'],
    ['', 'kube-system/kube-dns:dns', 'udp', 'TCOU7JCQXEZGVUNU'],
    ['', 'kube-system/kube-dns:dns-tcp', 'tcp', 'ERIFXISQEP7F7OF4'],
    ['', 'kube-system/kube-dns:metrics', 'tcp', 'JD5MR3NA4I4DYORP'],
    ['', 'default/nginx', 'tcp', '2CMXP7HKUVJN7L6M'],
    ['', 'ns1/svc1:p80', 'tcp', 'XPGD46QRK7WJZT7O'],
    ['', 'ns2/svc2:dns-sctp', 'sctp', 'L76IW5RJFPV7YBZO'],
  ])('%s %s %s', (_, name, protocol, hash) => {
    expect(serviceChains({ name, protocol })).toEqual({
      cluster: `KUBE-SVC-${hash}`,
      local: `KUBE-SVL-${hash}`,
      external: `KUBE-EXT-${hash}`,
      firewall: `KUBE-FW-${hash}`,
    })
  })

  test.each([
    ['H4', 'shop/web', '10.244.1.9:8080', 'WLSS255UV4TZ6REW'],
    ['H5', 'shop/web', '[fd00:10:244:1::9]:8080', '2LS5DZPSSH4BJEIA'],
    ['', 'ns1/svc1:p80', '10.180.0.1:80', 'SXIVWICOYRO3J4NJ'],
    ['', 'ns4/svc4:p80', '10.180.0.5:80', 'C6EBXVWJJZMIWKLZ'],
    ['', 'ns1/svc1:p80', '[fd00:10:180::1]:80', 'OGYCNMB4EMRUSJ6N'],
  ])('%s endpoint of %s at %s', (_, name, endpoint, hash) => {
    expect(endpointChain({ name, protocol: 'tcp' }, endpoint)).toBe(`KUBE-SEP-${hash}`)
  })
})

test('own names have the same prefixes and sixteen hex digits, and fit the kernel', () => {
  const { cluster } = serviceChains({ name: 'shop/web', protocol: 'tcp' }, 'own')
  expect(cluster).toMatch(/^KUBE-SVC-[0-9A-F]{16}$/)
  expect(cluster.length).toBeLessThanOrEqual(28)
  expect(isServiceChain(cluster)).toBe(true)
})

test('H7: a chain of the old form with a trailing colon is known again', () => {
  const service = serviceOf('default/nginx', { ports: [portOf(80)] })
  const owners = indexChainOwners([service])
  expect(chainOwner(owners, 'KUBE-SVC-4N57TFCL4MD7ZTDA')).toMatchObject({ service, isOldForm: true })
  expect(chainOwner(owners, 'KUBE-SVC-2CMXP7HKUVJN7L6M')).toMatchObject({ service, isOldForm: false })
  expect(chainOwner(owners, 'KUBE-SVC-AAAAAAAAAAAAAAAA')).toBeUndefined()
  expect(chainOwner(owners, 'KUBE-SERVICES')).toBeUndefined()
})
