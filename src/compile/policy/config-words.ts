/** Words of cilium-config, and those that the agent refuses. Mirrors pkg/option and strconv.ParseBool, Cilium 1.16 to 1.19. */

const trueWords = ['1', 't', 'T', 'TRUE', 'true', 'True']
const falseWords = ['0', 'f', 'F', 'FALSE', 'false', 'False']

/** Undefined where the option is not set, is empty, or is no word for either. */
export function readFlag(text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined
  return trueWords.includes(text) ? true : falseWords.includes(text) ? false : undefined
}

/** `enable-policy` in any case. */
export function readEnforcement(text: string | undefined): 'default' | 'always' | 'never' | undefined {
  const word = text?.toLowerCase()
  return word === 'default' || word === 'always' || word === 'never' ? word : undefined
}

const choices: Readonly<Record<string, readonly string[]>> = {
  'routing-mode': ['native', 'tunnel'],
  'tunnel-protocol': ['vxlan', 'geneve'],
  'bpf-lb-mode': ['snat', 'dsr', 'hybrid'],
  'bpf-lb-algorithm': ['random', 'maglev'],
  'bpf-lb-dsr-dispatch': ['opt', 'ipip', 'geneve'],
  'bpf-lb-acceleration': ['disabled', 'native', 'best-effort', 'testing-only'],
}

/** Those that are read here. */
const flags = [
  'enable-ipv4',
  'enable-ipv6',
  'enable-node-port',
  'enable-session-affinity',
  'bpf-lb-external-clusterip',
  'enable-svc-source-range-check',
  'bpf-lb-source-range-all-types',
  'bpf-lb-proto-diff',
  'enable-service-topology',
  'enable-egress-gateway',
  'enable-ipv4-egress-gateway',
  'enable-ip-masq-agent',
  'enable-local-redirect-policy',
  'auto-direct-node-routes',
  'encrypt-node',
  'enable-encryption-strict-mode',
  'enable-wireguard',
  'enable-ipsec',
  'enable-ipv4-masquerade',
  'enable-ipv6-masquerade',
  'enable-bpf-masquerade',
  'bpf-lb-sock',
  'bpf-lb-sock-hostns-only',
  'enable-host-legacy-routing',
  'enable-endpoint-routes',
  'enable-host-firewall',
  'enable-l7-proxy',
  'policy-audit-mode',
]

export type BadWord = { readonly key: string; readonly message: string }

/** An empty value is as good as none. */
export function badWords(data: Readonly<Record<string, string>>): readonly BadWord[] {
  const given = (key: string): string | undefined => (data[key] === '' ? undefined : data[key])
  const bad: BadWord[] = []
  for (const [key, words] of Object.entries(choices)) {
    const text = given(key)
    if (text !== undefined && !words.includes(text))
      bad.push({ key, message: `"${text}" is none of ${words.join(', ')}` })
  }
  const policy = given('enable-policy')
  if (policy !== undefined && readEnforcement(policy) === undefined) {
    bad.push({ key: 'enable-policy', message: `"${policy}" is none of default, always, never` })
  }
  for (const key of flags) {
    const text = given(key)
    if (text !== undefined && readFlag(text) === undefined) {
      bad.push({ key, message: `"${text}" is neither true nor false` })
    }
  }
  return bad
}
