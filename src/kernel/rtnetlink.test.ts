import { expect, test } from 'vitest'
import { readLinkLayer } from './datapath-interfaces'
import { linkLayerOf } from './rtnetlink'

test('a device is of Ethernet, of bare IP, or refused with its link type', () => {
  const [ethernet, loopback, tun, sit, can, infiniband] = [1, 772, 65534, 776, 280, 32].map(linkLayerOf)
  expect([ethernet, loopback, tun, sit, can, infiniband]).toEqual([
    'ethernet',
    'ethernet',
    'ip',
    'ip',
    'other',
    'other',
  ])
  const device = { index: 3, name: 'can0', linkLayer: linkLayerOf(280), hardwareType: 280, isUp: false }
  expect(() => readLinkLayer(device)).toThrow(
    /can0 carries neither Ethernet .* \(its link type is 280\).*; attach an interface/,
  )
})
