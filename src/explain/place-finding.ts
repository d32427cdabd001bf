/** In which layer a finding of another room belongs, by what it is about. */
import type { Finding } from '#base/finding'
import type { LayerName } from './explanation'

const ofSlices =
  /^(services\.(port-name-mismatch|slice-port-without-number|hidden-slice|endpoint-of-other-family)|endpointslices\.(mirror-.*|orphan|topology-.*))$/
const ofPods = /^(pod\..*|endpointslices\.(no-pods|no-pods-read|node-missing|node-unknown|no-address-in-family))$/

export function placeFinding({ code, object }: Finding): LayerName {
  if (code.startsWith('proxy-config.')) return 'rules'
  if (ofSlices.test(code) || object?.kind === 'EndpointSlice' || object?.kind === 'Endpoints') return 'slices'
  return ofPods.test(code) || object?.kind === 'Pod' ? 'pods' : 'service'
}
