import { expect, test } from 'vitest'
import { emptyCluster } from '#model/cluster'
import { metaOf } from '../../../test/golden/objects'
import { nodeIptables } from './node-iptables'

const codesWith = (conf: string, settings = {}) => {
  const meta = metaOf('ConfigMap', 'kube-system/kube-proxy')
  const configMap = { meta, data: { 'config.conf': conf } }
  const cluster = { ...emptyCluster, configMaps: new Map([['kube-system/kube-proxy', configMap]]) }
  return nodeIptables(cluster, [], { family: 'ipv4', settings }).findings
}

test.each(['mode: nftables', 'mode: ipvs'])(
  'iptables rules of a kube-proxy with %s are told not to be its own',
  (conf) => {
    expect(codesWith(conf)).toMatchObject([{ code: 'proxy-config.other-mode', severity: 'warning', path: 'mode' }])
  },
)

test('nothing is told in iptables mode, or when the user names a mode', () => {
  expect(codesWith('mode: iptables')).toEqual([])
  expect(codesWith('mode: ""')).toEqual([])
  expect(codesWith('mode: nftables', { mode: 'iptables' })).toEqual([])
})
