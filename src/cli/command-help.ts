/** What `--help` of a command says after its options: exit codes and examples. */

/** Two for each command, run as they stand in a checkout. */
const examples: Readonly<Record<string, readonly [string, string]>> = {
  endpoints: [
    'portolan endpoints shop/web --from samples/shop',
    'portolan endpoints --from cluster.yaml --slices diff',
  ],
  iptables: [
    'portolan iptables --from samples/shop --node node-a',
    'portolan iptables --from samples/shop --format restore --node node-a',
  ],
  nftables: [
    'portolan nftables --from samples/shop --node node-a',
    'portolan nftables --from samples/shop --format json --layout 1.31',
  ],
  trace: [
    'portolan trace --ruleset node.save --to 10.96.0.20:80',
    'portolan trace --all --from samples/shop --node node-a',
  ],
  explain: ['portolan explain shop/web --from samples/shop', 'portolan explain web -n shop --context staging'],
  dns: ['portolan dns web.shop --from samples/shop', 'portolan dns web.shop --pod shop/client --from samples/shop'],
  'resolv-conf': [
    'portolan resolv-conf --pod shop/client --from samples/shop',
    'portolan resolv-conf -n shop --context staging',
  ],
  broker: ['portolan broker --data flows', 'portolan broker --database postgres://portolan@db/flows'],
  flows: [
    'portolan flows --to-namespace shop --not verdict=ALLOW --since 1h',
    'portolan flows --from-pod shop/web --port 443 --follow',
  ],
  who: ['portolan who 10.244.1.5 --at 2026-07-23T10:00:00Z', 'portolan who 10.244.1.5 --at 15m -o wide'],
  agent: [
    'portolan agent --node node-a --from policies/ --status status/ --mode enforce',
    'portolan agent attach host0 --mode enforce',
  ],
  'agent attach': [
    'portolan agent attach host0 --bpffs /run/portolan/bpf --mode enforce',
    'portolan agent attach eth0 --netns /var/run/netns/cni-1234 -o json',
  ],
  'agent mode': ['portolan agent mode', 'portolan agent mode audit --bpffs /run/portolan/bpf'],
  controller: [
    'portolan controller --from samples/traffic-policy --once',
    'portolan controller --from policies --status /run/portolan/status',
  ],
  policy: ['portolan policy matrix --from samples/shop', 'portolan policy eval --help'],
  'policy eval': [
    'portolan policy eval --from samples/shop --source shop/client --to shop/svc/web --port 80',
    'portolan policy eval --from samples/policies --source shop/deploy/web --to shop/sts/db --port 5432',
  ],
  'policy matrix': [
    'portolan policy matrix --from samples/policies',
    'portolan policy matrix --from samples/policies --focus shop/db --explain',
  ],
  'policy diff': [
    'portolan policy diff samples/policies/cluster.yaml samples/policies',
    'portolan policy diff samples/policies/cluster.yaml samples/policies -o md',
  ],
  'policy lint': [
    'portolan policy lint --from samples/policies',
    'portolan policy lint --from samples/policies -o json',
  ],
  'policy explain': [
    'portolan policy explain --policy samples/traffic-policy/web.yaml --path Private --src 10.0.0.1 --dst 10.0.0.2 --proto tcp --dport 80',
    'portolan policy explain --policy tenant/web --from samples/traffic-policy --src fd00::1 --dst fd00::2 --proto icmpv6 --icmp-type 128',
  ],
  'policy show': [
    'portolan policy show tenant/web-0 --from samples/traffic-policy --node node-a --status /run/portolan/status',
    'portolan policy show tenant/web-0 --from samples/traffic-policy --node node-a --bpffs /run/portolan/bpf -o json',
  ],
  'policy audit': [
    'portolan policy audit --flows samples/flows/shop.jsonl --from samples/flows/cluster.yaml --policies samples/flows/proposed.yaml',
    'portolan policy audit --broker http://127.0.0.1:8090 --policies proposed.yaml --since 24h -o json',
  ],
  path: [
    'portolan path business/a business/svc/server --from samples/cilium --reply',
    'portolan path internet 192.168.1.10:30080 --from samples/cilium',
  ],
  'maps diff': [
    'portolan maps diff --from samples/cilium --node node-a --dump samples/cilium-dump',
    'portolan maps diff --from cluster.yaml --node node-a --dump ipcache.txt --dump lb.txt -o json',
  ],
  maps: [
    'portolan maps --from samples/cilium --node node-a',
    'portolan maps ipcache --from samples/cilium --node node-a --explain',
  ],
  generate: [
    'portolan generate networkpolicy shop/db --flows samples/flows/shop.jsonl --from samples/flows/cluster.yaml',
    'portolan generate ciliumnetworkpolicy -A --broker http://127.0.0.1:8090 --output-dir policies',
  ],
  'generate networkpolicy': [
    'portolan generate networkpolicy shop/db --flows samples/flows/shop.jsonl',
    'portolan generate networkpolicy -n shop --broker http://127.0.0.1:8090 --since 14d --output-dir policies',
  ],
  'generate ciliumnetworkpolicy': [
    'portolan generate ciliumnetworkpolicy -A --flows samples/flows/shop.jsonl --allow-dns',
    'portolan generate ciliumnetworkpolicy shop/db --broker http://127.0.0.1:8090',
  ],
  demo: ['portolan demo --once', 'portolan demo --listen 127.0.0.1:9000 --data demo-data'],
}

const exitCodes = `
Exit codes:
  0 all well          1 bad news           2 wrong usage or unreadable input
  3 unknown answer    4 a bug of Portolan
`

/** Ends in a line break. */
export function commandHelp(name: string): string {
  const lines = (examples[name] ?? []).map((line) => `  ${foldCommand(line)}\n`).join('')
  return `${exitCodes}${lines === '' ? '' : `\nExamples:\n${lines}`}`
}

/** A command too long for 80 columns goes on after a backslash, as a shell reads it; options stay with their values. */
function foldCommand(command: string): string {
  const [first = '', ...parts] = command.split(/ (?=-)/)
  const lines = [first]
  for (const part of parts) {
    const last = lines.at(-1) ?? ''
    if (last.length + part.length < 75) lines[lines.length - 1] = `${last} ${part}`
    else lines.push(part)
  }
  return lines.join(' \\\n    ')
}
