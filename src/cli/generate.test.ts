import { describe, expect, test } from 'vitest'
import { runWords } from '../../test/run-words'
import type { Captured } from './capture'

function generate(...words: readonly string[]): Promise<Captured> {
  return runWords([
    'generate',
    'networkpolicy',
    ...words,
    '--flows',
    'samples/flows/shop.jsonl',
    '--from',
    'samples/flows/cluster.yaml',
  ])
}

describe('a workload is named by kind as for kubectl', () => {
  test.each([['shop/sts/db'], ['shop/StatefulSets/db'], ['sts/db', '-n', 'shop']])('%s %s %s', async (...words) => {
    const whole = await generate('shop/db')
    expect(whole).toMatchObject({ code: 0, out: expect.stringContaining('namespace: shop') })
    expect(await generate(...words)).toEqual(whole)
  })

  test('another kind of that name is none', async () => {
    expect(await generate('shop/deploy/db')).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringContaining('shop/Deployment/db'),
    })
    expect((await generate('other/db', '-n', 'shop')).err).toContain(
      'other/db is in namespace other and --namespace says',
    )
  })

  test('a Service is told to be none', async () => {
    expect(await generate('shop/svc/db')).toMatchObject({
      code: 2,
      err: 'portolan: shop/svc/db is a Service, and policies are of pods; name the workload behind it\n',
    })
  })
})
