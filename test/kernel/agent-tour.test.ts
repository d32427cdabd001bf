/** docs/traffic-policy.md: the five minutes on two namespaces go as they say, line by line, in namespaces and folders of this run's own. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runWords } from '../run-words'
import { type AgentProcess, agentFiles, spawnAgent, until } from './agent-process'
import { createBpffsFolder } from './bpffs-folder'
import { createPair } from './datapath-lab'
import { describeKernel } from './describe-kernel'
import { removeNamespaces } from './namespace'
import { runCommand, sleep } from './run-command'

type Answer = { readonly ok: boolean; readonly out: string }

async function portolan(words: readonly string[]): Promise<Answer> {
  const { code, out, err } = await runWords(words)
  return { ok: code === 0, out: `${out}${err}` }
}

describeKernel('the tour', () => {
  test('docs/traffic-policy.md: five minutes on two namespaces', async () => {
    const bpffs = createBpffsFolder()
    const files = agentFiles('node-a')
    const { host, workload } = createPair()
    removeNamespaces([host, workload])
    const own = (line: string): string =>
      line
        .replace(
          /(netns(?: add| exec| delete)?|-n) (host|workload)\b/g,
          (_, way, name) => `${way} ${name === 'host' ? host : workload}`,
        )
        .replaceAll('/run/portolan/bpf', join(bpffs.path, 'portolan'))
        .replaceAll('/run/portolan/tour', join(files.from, '..', 'tour'))
        .replaceAll('/run/portolan/status', files.status)
    let agent: AgentProcess | undefined
    const outputs = new Map<string, string>()

    async function follow(command: string): Promise<Answer> {
      const [program, ...words] = command.split(' ')
      if (command === 'kill %1') {
        agent?.child.kill('SIGTERM')
        return { ok: (await agent?.ended) === 0, out: '' }
      }
      if (program !== 'portolan') {
        const done = runCommand(['sh', '-c', command])
        // An edit is in force long before a reader can type the next line.
        if (program === 'sed') sleep(500)
        return { ok: done.ok, out: done.output }
      }
      if (words.at(-1) !== '&') return portolan(words)
      agent = spawnAgent([...words.slice(1, -1), '--metrics-listen', 'none'])
      await until('the agent has published', () => files.entry('tenant/workload')?.egress?.state === 'Applied')
      return { ok: true, out: '' }
    }

    const section =
      readFileSync('docs/traffic-policy.md', 'utf8')
        .split('## Five minutes on two namespaces\n')[1]
        ?.split('\n## ')[0] ?? ''
    const lines = [...section.matchAll(/```sh\n(.*?)```/gs)].flatMap(([, block = '']) => block.trim().split('\n'))
    expect(lines.length).toBeGreaterThan(20)
    for (const line of lines) {
      const [command = '', comment = ''] = line.split(/ +# /)
      if (/^mkdir|^umount/.test(command)) continue
      const { ok, out } = await follow(own(command))
      expect(ok, `${command}\n${out}\n${agent?.output()}`).toBe(!/^no answer|^denied/.test(comment))
      outputs.set(command.split(' ').slice(0, 3).join(' '), out)
    }
    const shown = outputs.get('portolan policy show') ?? ''
    expect(shown).toMatch(/ping \(#0\) +deny +3 +294/)
    expect(shown).toMatch(/deny-all \(#0\) +deny +\d+/)
    expect(outputs.get('portolan policy explain')).toMatch(/^rule +ping \(#0\)$/m)
    expect(outputs.get('portolan controller --from')).toMatch(
      /^tenant +workload +workload +.* +True +True +Enforcing$/m,
    )
    expect(existsSync(`/run/netns/${host}`)).toBe(false)
    bpffs.remove()
    files.remove()
  })
})
