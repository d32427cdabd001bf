/** A process that attaches and publishes, and is killed right after one step of it: FOLDER NAMESPACE STEP COUNT. */
import { openDatapath } from '#kernel/datapath'
import { loadNative, type Native } from '#kernel/native'
import { allowAll, denyAll, requestOf } from './datapath-lab'

const [folder = '', host = '', step = '', count = '1'] = process.argv.slice(2)
let left = Number(count)
const usual = loadNative()
const native: Native = {
  ...usual,
  bpf(command, attributes, size, name = '') {
    const result = usual.bpf(command, attributes, size, name)
    if (new RegExp(step).test(name)) left -= 1
    if (left === 0) process.kill(process.pid, 'SIGKILL')
    return result
  },
}
const datapath = openDatapath({ folder, native })
datapath.setMode('enforce')
const held = datapath.attach({ name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' })
datapath.publish([requestOf(held, 'ingress', denyAll)])
datapath.publish([requestOf(held, 'egress', { ...allowAll, generation: 2 })])
