/** A process that owns a datapath as an agent does, until it is killed: FOLDER NAMESPACE, and it says when it is ready. */
import { openDatapath } from '#kernel/datapath'
import { denyAll, requestOf } from './datapath-lab'

const [folder = '', host = ''] = process.argv.slice(2)
const datapath = openDatapath({ folder })
const held = datapath.attach({ name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' })
datapath.setMode('enforce')
datapath.publish([
  requestOf(held, 'egress', { uid: 'icmp', entries: [{ protocol: 'icmp', action: 'allow', rule: 0 }] }),
  requestOf(held, 'ingress', denyAll),
])
console.log('ready')
setInterval(() => {}, 1000)
