/**
 * A process that attaches and publishes, and is killed right after one step of it: FOLDER NAMESPACE STEP COUNT. With
 * `slow` after them it waits at that step instead, and only attaches.
 */
import { openAttacher, openDatapath } from '#kernel/datapath'
import { loadNative, type Native } from '#kernel/native'
import { allowAll, denyAll, requestOf } from './datapath-lab'
import { sleep } from './run-command'

const [folder = '', host = '', step = '', count = '1', slow] = process.argv.slice(2)
let left = Number(count)
const usual = loadNative()
const native: Native = {
  ...usual,
  bpf(command, attributes, size, name = '') {
    const result = usual.bpf(command, attributes, size, name)
    if (!new RegExp(step).test(name)) return result
    left -= 1
    if (left === 0 && slow !== undefined) sleep(1500)
    else if (left === 0) process.kill(process.pid, 'SIGKILL')
    return result
  },
}
const request = { name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' } as const
if (slow === undefined) {
  const datapath = openDatapath({ folder, native })
  datapath.setMode('enforce')
  const held = datapath.attach(request)
  datapath.publish([requestOf(held, 'ingress', denyAll)])
  datapath.publish([requestOf(held, 'egress', { ...allowAll, generation: 2 })])
} else {
  openAttacher({ folder, native }).attach(request)
}
