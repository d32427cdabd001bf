/** Opens a suite that needs a real kernel, or skips it with the reason in its title. */
import { accessSync, constants } from 'node:fs'
import { describe } from 'vitest'
import { runCommand, toolEnvironment } from './run-command'

type Availability = { readonly ok: true } | { readonly ok: false; readonly reason: string }

const tools = [
  'conntrack',
  'ip',
  'ipset',
  'nfacct',
  'nft',
  'ping',
  'tcpdump',
  'tcpreplay',
  'xtables-legacy-multi',
  'xtables-nft-multi',
] as const

let known: Availability | undefined

/** Asked once a process; a reason against it is printed then. */
function available(): Availability {
  if (known === undefined) {
    known = findOut()
    if (!known.ok) console.warn(`kernel tests are skipped: ${known.reason}`)
  }
  return known
}

export function describeKernel(title: string, suite: () => void): void {
  const here = available()
  if (here.ok) describe(title, suite)
  else describe.skip(`${title} (skipped: ${here.reason})`, suite)
}

function findOut(): Availability {
  if (process.platform !== 'linux') return { ok: false, reason: 'kernel tests need Linux' }
  if (process.getuid?.() !== 0) return { ok: false, reason: 'kernel tests need root, to make network namespaces' }
  const missing = tools.filter((tool) => !isOnPath(tool))
  if (missing.length > 0) return { ok: false, reason: `these tools are not installed: ${missing.join(', ')}` }
  const namespace = runCommand(['unshare', '--net', 'nft', 'list', 'ruleset'])
  return namespace.ok ? { ok: true } : { ok: false, reason: `no network namespace with nftables: ${namespace.message}` }
}

function isOnPath(tool: string): boolean {
  return toolEnvironment.PATH.split(':').some((folder) => {
    try {
      accessSync(`${folder}/${tool}`, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
