/** `portolan policy explain`: that it needs no cluster, and what it says when its deciders disagree. */
import { Command } from 'commander'
import { expect, test } from 'vitest'
import { compilePolicy } from '#compile/traffic-policy/compile-policy'
import type { ExitCode } from './command'
import { addPolicyExplainWith, type ExplainParts } from './policy-explain'
import { runPortolan } from './run-portolan'

const words = (path: string): readonly string[] =>
  `--policy samples/traffic-policy/web.yaml --path ${path} --src 10.0.0.1 --dst 10.0.0.2 --proto tcp --dport 80`.split(
    ' ',
  )

type Ended = { readonly out: string; readonly err: string; readonly code: ExitCode }

async function explainWith(parts: ExplainParts, argv: readonly string[]): Promise<Ended> {
  let [out, err] = ['', '']
  let code: ExitCode = 0
  const io = {
    out: (text: string) => {
      out += text
    },
    err: (text: string) => {
      err += text
    },
    stdin: (async function* () {})(),
    isTerminal: false,
  }
  const end = (ended: ExitCode): void => {
    code = ended
  }
  const program = new Command()
  addPolicyExplainWith(program, { io, end, runOn: (other, line) => runPortolan(line, other) }, parts)
  await program.parseAsync(['explain', ...argv], { from: 'user' })
  return { out, err, code }
}

const corrupted: ExplainParts = {
  compile: (policy) => {
    const compilation = compilePolicy(policy)
    if (compilation.kind === 'refused') return compilation
    const [entry, ...rest] = compilation.compiled.entries
    const entries = entry === undefined ? [] : [{ ...entry, destinationPorts: { from: 81, to: 81 } }, ...rest]
    return { kind: 'compiled', compiled: { ...compilation.compiled, entries } }
  },
}

test('28: a corrupted entry ends with exit code 4 and both answers', async () => {
  const { out, err, code } = await explainWith(corrupted, words('Private'))
  expect(code).toBe(4)
  expect(out).toBe(`policy               tenant/web
path                 Private
verdict              unknown: the deciders disagree
by policy            allow, rule, http (#0)
by compiled entries  deny, no_match, -
compiled entries     5
`)
  expect(err).toContain('this is a bug of Portolan')
})

test('28: the same as JSON', async () => {
  const { out, code } = await explainWith(corrupted, [...words('Private'), '-o', 'json'])
  expect(code).toBe(4)
  expect(JSON.parse(out).deciders).toEqual([
    { name: 'policy', verdict: 'allow', reason: 'rule', rule: { name: 'http', index: 0 } },
    { name: 'compiled entries', verdict: 'deny', reason: 'no_match', rule: null },
  ])
})

test('a third decider is asked where the machine offers one, and must agree too', async () => {
  const kernelSays = (verdict: 'allow' | 'deny'): ExplainParts => ({
    openDeciders: async () => ({
      deciders: [{ name: 'kernel', decide: () => ({ verdict, reason: 'rule', rule: 0 }) }],
      close: () => {},
    }),
  })
  expect((await explainWith(kernelSays('allow'), words('Private'))).code).toBe(0)
  const { out, code } = await explainWith(kernelSays('deny'), words('Private'))
  expect(code).toBe(4)
  expect(out).toContain('by kernel            deny, rule, http (#0)')
})

test('77: a policy in a file needs no cluster and no datapath', async () => {
  const { out, code } = await explainWith({}, words('Private'))
  expect(code).toBe(0)
  expect(out).toBe(`policy            tenant/web
path              Private
verdict           allow
reason            rule
rule              http (#0)
compiled entries  5
`)
})
