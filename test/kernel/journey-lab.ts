/**
 * Three nodes, their pods and the world outside, each in a namespace of its own: nodes share a bridge, pods hang on their
 * node by a veth pair, and routes are those that a plugin with direct routing makes. Addresses are of test/journey.
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { createNamespaces, endWithUs, inside, removeNamespaces } from './namespace'
import { mustRun, runCommand } from './run-command'

const script = fileURLToPath(new URL('./journey-peer.mjs', import.meta.url))

const nodeNames = ['n1', 'n2', 'n3'] as const
const podPlaces = [
  { name: 'a', node: 'n1', ip: '10.244.1.10' },
  { name: 'b', node: 'n1', ip: '10.244.1.20' },
  { name: 'c', node: 'n2', ip: '10.244.2.30' },
] as const
const labels = ['lan', 'world', ...nodeNames, ...podPlaces.map(({ name }) => name)] as const

export type Label = (typeof labels)[number]

export type Ends = { readonly local: string; readonly remote: string }
export type Seen =
  | { readonly client: Ends; readonly server: Ends; readonly error?: undefined }
  | { readonly error: string }

export type JourneyLab = {
  readonly namespaceOf: (label: Label) => string
  readonly run: (label: Label, command: readonly string[], input?: string) => string
  readonly connect: (label: Label, host: string, port: number, sourcePort: number) => Seen
  /** One datagram of UDP. */
  readonly send: (
    label: Label,
    to: { readonly host: string; readonly port: number; readonly sourcePort: number; readonly ttl?: number },
  ) => void
  readonly close: () => void
}

export async function createJourneyLab(): Promise<JourneyLab> {
  const made = createNamespaces(labels)
  const namespaceOf = (label: Label): string => made[labels.indexOf(label)] ?? ''
  const run = (label: Label, command: readonly string[], input = ''): string =>
    mustRun(inside(namespaceOf(label), command), input)
  const close = () => removeNamespaces(made)
  try {
    for (const label of labels) run(label, ['ip', 'link', 'set', 'lo', 'up'])
    run('lan', ['ip', 'link', 'add', 'br0', 'up', 'type', 'bridge', 'stp_state', '0'])
    for (const label of ['world', ...nodeNames] as const) {
      joinLan(label, { namespaceOf, run })
      writeSysctls(label, { run, namespaceOf })
    }
    run('world', ['ip', '-batch', '-'], worldLines.join('\n'))
    for (const name of nodeNames) run(name, ['ip', '-batch', '-'], nodeLines(name).join('\n'))
    for (const pod of podPlaces) addPod(pod, { namespaceOf, run })
    for (const label of ['b', 'c'] as const) await serve(namespaceOf(label), 8080)
    await serve(namespaceOf('world'), 443)
  } catch (error) {
    close()
    throw error
  }
  const connect = (label: Label, host: string, port: number, sourcePort: number): Seen => {
    const words = [process.execPath, script, 'client', host, String(port), String(sourcePort), '1500']
    const told = runCommand(inside(namespaceOf(label), words))
    return JSON.parse(told.output)
  }
  const send: JourneyLab['send'] = (label, { host, port, sourcePort, ttl = 64 }) => {
    run(label, [process.execPath, script, 'datagram', host, String(port), String(sourcePort), String(ttl)])
  }
  return { namespaceOf, run, connect, send, close }
}

type Rooms = Pick<JourneyLab, 'namespaceOf' | 'run'>

function joinLan(label: Label, { namespaceOf, run }: Rooms): void {
  const [own, lan] = [namespaceOf(label), namespaceOf('lan')]
  mustRun(['ip', 'link', 'add', 'eth0', 'netns', own, 'type', 'veth', 'peer', 'name', `to-${label}`, 'netns', lan])
  run('lan', ['ip', 'link', 'set', `to-${label}`, 'master', 'br0', 'up'])
  run(label, ['ip', 'link', 'set', 'eth0', 'up'])
}

/** It stands for all that is outside, and knows no pod. */
const worldLines = [
  'addr add 192.168.1.254/24 dev eth0',
  'addr add 198.51.100.7/32 dev lo',
  'addr add 8.8.8.8/32 dev lo',
  'route add 203.0.113.9/32 via 192.168.1.1',
]

function nodeLines(name: (typeof nodeNames)[number]): readonly string[] {
  const number = nodeNames.indexOf(name) + 1
  const peers = [1, 2, 3].filter((other) => other !== number)
  return [
    `addr add 192.168.1.${number}/24 dev eth0`,
    'route add default via 192.168.1.254',
    ...peers.map((other) => `route add 10.244.${other}.0/24 via 192.168.1.${other}`),
  ]
}

function addPod({ name, node, ip }: (typeof podPlaces)[number], { namespaceOf, run }: Rooms): void {
  const device = `veth-${name}`
  const macs = { node: '02:70:6f:72:00:01', pod: '02:70:6f:72:00:02' }
  mustRun(
    ['ip', '-batch', '-'],
    `link add ${device} address ${macs.node} netns ${namespaceOf(node)} type veth peer name eth0 address ${macs.pod} netns ${namespaceOf(name)}\n`,
  )
  run(node, ['ip', 'link', 'set', device, 'up'])
  run(name, ['ip', 'link', 'set', 'eth0', 'up'])
  run(
    name,
    ['ip', '-batch', '-'],
    [
      `addr add ${ip}/32 dev eth0`,
      `neigh add 169.254.1.1 lladdr ${macs.node} dev eth0 nud permanent`,
      'route add default via 169.254.1.1 dev eth0 onlink',
    ].join('\n'),
  )
  run(node, ['ip', 'route', 'add', `${ip}/32`, 'dev', device])
  run(node, ['ip', 'neigh', 'add', ip, 'lladdr', macs.pod, 'dev', device, 'nud', 'permanent'])
}

/** Nodes forward between machines of one network, of which they tell none: a client that learned a shorter way would miss its node. */
const sysctls = [
  'ip_forward=1',
  ...['all', 'default', 'eth0'].flatMap((device) => [
    `conf.${device}.rp_filter=0`,
    `conf.${device}.send_redirects=0`,
    `conf.${device}.accept_redirects=0`,
  ]),
]

function writeSysctls(label: Label, { run }: Rooms): void {
  const lines = sysctls.map((one) => {
    const [key = '', value = ''] = one.split('=')
    return `echo ${value} > /proc/sys/net/ipv4/${key.replaceAll('.', '/')}`
  })
  run(label, ['sh', '-es'], lines.join('\n'))
  // The last packets of a connection whose row was flushed make no row of their own.
  run(label, ['sh', '-c', 'f=/proc/sys/net/netfilter/nf_conntrack_tcp_loose; if [ -e $f ]; then echo 0 > $f; fi'])
}

async function serve(namespace: string, port: number): Promise<void> {
  const [program = '', ...rest] = inside(namespace, [process.execPath, script, 'server', String(port)])
  const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'] })
  endWithUs(child)
  await new Promise<void>((resolve, reject) => {
    child.stdout.once('data', () => resolve())
    child.once('exit', () => reject(new Error('the server did not start')))
  })
}
