/** A folder that the system will not have is a sentence at once, wherever an option names one. */

import { expect, test } from 'vitest'
import { runWords } from '../../test/run-words'

const flows = ['--flows', 'samples/flows/shop.jsonl', '--from', 'samples/flows/cluster.yaml']

test.each([
  ['--output-dir', ['generate', 'networkpolicy', 'shop/db', ...flows, '--output-dir', '/proc/none/policies']],
  ['--data', ['broker', '--listen', '127.0.0.1:0', '--data', '/proc/none/data']],
  ['--data', ['demo', '--once', '--data', '/proc/none/data']],
  ['--load', ['maps', 'lxc', '--from', 'samples/cilium', '--node', 'node-a', '--load', '/proc/none/maps']],
])('%s of %j', async (_, argv) => {
  const { code, err } = await runWords(argv)
  expect(code).toBe(2)
  expect(err).toMatch(/\/proc\/none.* cannot be (made|written).*name another folder/)
})
