/** Ends of `policy eval`, named without a namespace. */
import { expect, test } from 'vitest'
import { runWords } from '../../test/run-words'

const from = ['--from', 'samples/cilium', '--semantics', 'cilium', '--port', '8080']

test.each(['b', 'pod/b', 'business/b'])('--to %s is looked for in the source’s namespace', async (to) => {
  const { code, out } = await runWords(['policy', 'eval', '--source', 'business/a', '--to', to, ...from])
  expect([code, out.split('\n')[0]]).toEqual([0, expect.stringContaining('business/b')])
})

test('a name that differs in case alone is told', async () => {
  const { code, err } = await runWords(['policy', 'eval', '--source', 'business/a', '--to', 'B', ...from])
  expect([code, err]).toEqual([
    2,
    expect.stringContaining('--to business/B: no Pod has that name: there is business/b'),
  ])
})
