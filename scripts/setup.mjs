/** Brings a checkout to where its commands run: npm packages, the built program and, for tests, the system's network tools. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** What the tests of the kernel, the database and clusters call, by the Debian package that brings it. */
const systemPackages = [
  'bind9-dnsutils',
  'conntrack',
  'gcc',
  'iproute2',
  'ipset',
  'iptables',
  'iputils-ping',
  'libc6-dev',
  'musl-tools',
  'nfacct',
  'nftables',
  'openssl',
  'postgresql',
  'tcpdump',
  'tcpreplay',
]

/** A long step is named before it starts, on stderr so that stdout keeps only results. */
export function say(text) {
  process.stderr.write(`${text}\n`)
}

/** Runs a command in the checkout with its output shown; returns its exit code, 127 when it could not start. */
export function runShown(command, args, env = {}) {
  const done = spawnSync(command, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } })
  if (done.error) say(`${command} could not be started: ${done.error.message}`)
  return done.status ?? 127
}

/** Installs the npm packages the lock file names, unless node_modules already holds exactly these. */
export function installPackages() {
  const stampPath = join(root, 'node_modules', '.portolan-setup')
  const stamp = packageStamp()
  if (existsSync(stampPath) && readFileSync(stampPath, 'utf8') === stamp) return
  if (!holdsLockedPackages()) {
    say('installing npm packages (about 30 s) …')
    rmSync(stampPath, { force: true })
    const code = runShown('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'])
    if (code !== 0) {
      stop(
        `npm ci failed with code ${code}; its reason is above. If it is the network, run this again; if package.json and ` +
          'package-lock.json disagree, run `npm install` and commit the lock file.',
      )
    }
  }
  writeFileSync(stampPath, stamp)
}

/** Builds dist/main.js when it is missing or older than anything it is made of. */
export function buildProgram() {
  const output = join(root, 'dist', 'main.js')
  const built = existsSync(output) ? statSync(output).mtimeMs : 0
  const sources = ['src', 'package.json', 'package-lock.json', 'tsdown.config.ts'].map((name) => join(root, name))
  if (built > Math.max(...sources.map(newestChange))) return
  say('building dist/main.js (a few seconds) …')
  const started = new Date()
  const done = spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, encoding: 'utf8' })
  if (done.status !== 0 || !existsSync(output)) {
    stop(`${done.stdout ?? ''}${done.stderr ?? ''}\nThe build failed: mend what it names above, then run it again.`)
  }
  // A file saved while the build ran may not be in it: the output counts as old as the build's start.
  utimesSync(output, started, started)
}

/**
 * Installs the Debian packages the kernel tests need. Returns why these tests cannot run here, or undefined when they can:
 * only a failed installation ends the program.
 */
export function installSystemTools() {
  if (process.platform !== 'linux') return 'kernel tests need Linux'
  if (process.getuid?.() !== 0) return 'kernel tests need root: they make network namespaces'
  if (!isDebian())
    return `kernel tests install their tools with apt, and this is not Debian: ${systemPackages.join(', ')}`
  const missing = systemPackages.filter((name) => !isInstalled(name))
  if (missing.length === 0) return undefined
  say(`installing Debian packages ${missing.join(', ')} (about 20 s) …`)
  const update = runApt(['update'])
  const install = runApt(['install', '--yes', '--no-install-recommends', ...missing])
  if (install.code === 0) return undefined
  const why = `${update.code === 0 ? '' : update.output}${install.output}`
  return stop(
    `${why}\nThese packages could not be installed: ${missing.join(', ')}. Run \`apt-get update\` and ` +
      `\`apt-get install ${missing.join(' ')}\` by hand, mend what it reports, then run this again.`,
  )
}

function packageStamp() {
  const lock = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex')
  return `${lock} node ${process.versions.node.split('.')[0]}\n`
}

/** npm keeps a list of what it installed; it agrees with the lock when someone ran `npm ci` by hand. */
function holdsLockedPackages() {
  const hidden = join(root, 'node_modules', '.package-lock.json')
  if (!existsSync(hidden)) return false
  const installed = JSON.parse(readFileSync(hidden, 'utf8')).packages
  const locked = Object.entries(JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages)
  const wanted = locked.filter(([path, entry]) => path !== '' && !entry.optional && !entry.devOptional)
  const foreign = Object.keys(installed).some((path) => !locked.some(([name]) => name === path))
  return !foreign && wanted.every(([path, entry]) => installed[path]?.integrity === entry.integrity)
}

function newestChange(path) {
  if (!existsSync(path)) return 0
  const { mtimeMs } = statSync(path)
  if (!statSync(path).isDirectory()) return mtimeMs
  return Math.max(mtimeMs, ...readdirSync(path).map((name) => newestChange(join(path, name))))
}

function isDebian() {
  const release = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : ''
  return /^ID(_LIKE)?=.*\bdebian\b/m.test(release)
}

function isInstalled(name) {
  const status = spawnSync('dpkg', ['--status', name], { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } })
  return /^Status: install ok installed$/m.test(status.stdout ?? '')
}

/** apt waits for dpkg's lock by itself, but not for the lock of its package lists. */
function runApt(args) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' }
  const options = ['-o', 'DPkg::Lock::Timeout=600', '-o', 'Acquire::Retries=3', '--quiet']
  for (let tries = 1; ; tries++) {
    const done = spawnSync('apt-get', [...options, ...args], { env, encoding: 'utf8', maxBuffer: 1 << 26 })
    const output = `${done.stdout ?? ''}${done.stderr ?? ''}${done.error?.message ?? ''}`
    const locked = done.status !== 0 && /Could not get lock|Unable to lock/.test(output)
    if (!locked || tries === 120) return { code: done.status ?? 127, output }
    if (tries === 1) say('waiting for another apt to finish …')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5000)
  }
}

function stop(sentence) {
  say(sentence.trim())
  process.exit(1)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  installPackages()
  buildProgram()
  say('ready: npx portolan --help')
}
