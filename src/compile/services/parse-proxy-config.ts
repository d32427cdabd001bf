/** kube-proxy's settings out of its ConfigMap: the KubeProxyConfiguration under the data key `config.conf`. */
import { load } from 'js-yaml'
import type { Finding, Parsed } from '#base/finding'
import { parsePrefix } from '#base/prefix'
import type { ConfigMap } from '#model/cluster'
import { type FindingCode, findingAt } from './findings'
import type { DetectLocal, ProxyMode, ProxySettings } from './proxy-settings'

type Fields = Readonly<Record<string, unknown>>
type Draft = { -readonly [Key in keyof ProxySettings]?: ProxySettings[Key] }

/** Reads values and notes those that are of the wrong kind; absent and null fields are left to the defaults. */
type Reader = {
  readonly note: (code: FindingCode, path: string, message: string) => void
}

const dataKey = 'config.conf'

export function parseProxyConfigMap(configMap: ConfigMap): Parsed<Partial<ProxySettings>> {
  const findings: Finding[] = []
  const note = (code: FindingCode, path: string, message: string): void => {
    findings.push(findingAt(configMap.meta, code, { path, message }))
  }
  const text = configMap.data[dataKey]
  if (text === undefined) {
    note('proxy-config.missing', 'data', `it has no key ${dataKey}; kube-proxy's defaults are used`)
    return { value: {}, findings }
  }
  const config = readConfig(text, note)
  return { value: config === undefined ? {} : readSettings(config, { note }), findings }
}

function readConfig(text: string, note: Reader['note']): Fields | undefined {
  const path = `data["${dataKey}"]`
  try {
    const config: unknown = load(text)
    if (isFields(config) && (config.kind === undefined || config.kind === 'KubeProxyConfiguration')) return config
    note('proxy-config.unreadable', path, "it is not a KubeProxyConfiguration; kube-proxy's defaults are used")
  } catch (error) {
    const [why] = String(error instanceof Error ? error.message : error).split('\n')
    note('proxy-config.unreadable', path, `it is not YAML (${why}); kube-proxy's defaults are used`)
  }
  return undefined
}

function readSettings(config: Fields, reader: Reader): Partial<ProxySettings> {
  const mode = readMode(config.mode, reader)
  const backend = mode === 'nftables' ? 'nftables' : 'iptables'
  const section = readSection(config, backend, reader)
  const draft: Draft = { mode }
  const masqueradeAll = readBoolean(section.masqueradeAll, `${backend}.masqueradeAll`, reader)
  if (masqueradeAll !== undefined) draft.masqueradeAll = masqueradeAll
  const masqueradeBit = readBit(section.masqueradeBit, `${backend}.masqueradeBit`, reader)
  if (masqueradeBit !== undefined) draft.masqueradeBit = masqueradeBit
  const iptables = readSection(config, 'iptables', reader)
  const localhost = readBoolean(iptables.localhostNodePorts, 'iptables.localhostNodePorts', reader)
  if (localhost !== undefined) draft.localhostNodePorts = localhost
  const liberal = readBoolean(readSection(config, 'conntrack', reader).tcpBeLiberal, 'conntrack.tcpBeLiberal', reader)
  if (liberal !== undefined) draft.conntrackTcpBeLiberal = liberal
  const addresses = readAddresses(config.nodePortAddresses, reader)
  if (addresses !== undefined) draft.nodePortAddresses = addresses
  const detectLocal = readDetectLocal(config, reader)
  if (detectLocal !== undefined) draft.detectLocal = detectLocal
  const gates = readSection(config, 'featureGates', reader)
  const path = 'featureGates.PreferSameTrafficDistribution'
  const preferSame = readBoolean(gates.PreferSameTrafficDistribution, path, reader)
  if (preferSame !== undefined) draft.preferSameTrafficDistribution = preferSame
  return draft
}

function readMode(value: unknown, { note }: Reader): ProxyMode {
  if (value === undefined || value === null || value === '' || value === 'iptables') return 'iptables'
  if (value === 'nftables') return value
  if (value === 'ipvs') {
    note(
      'proxy-config.other-mode',
      'mode',
      'ipvs keeps its Services outside iptables; rendered rules are not those of the node',
    )
    return value
  }
  note(
    'proxy-config.unknown-mode',
    'mode',
    `${JSON.stringify(value)} is not iptables, nftables or ipvs; iptables is assumed`,
  )
  return 'iptables'
}

/** An empty mode is ClusterCIDR, which with no CIDR detects nothing (cmd/kube-proxy/app/options.go, 1.34). */
function readDetectLocal(config: Fields, reader: Reader): DetectLocal | undefined {
  const mode = config.detectLocalMode ?? ''
  const section = readSection(config, 'detectLocal', reader)
  switch (mode) {
    case '':
    case 'ClusterCIDR': {
      const cidrs = readCidrs(readText(config.clusterCIDR, 'clusterCIDR', reader), 'clusterCIDR', reader)
      return { kind: 'ClusterCIDR', cidrs }
    }
    case 'NodeCIDR':
      return { kind: 'NodeCIDR' }
    case 'BridgeInterface':
      return { kind: 'BridgeInterface', name: readText(section.bridgeInterface, 'detectLocal.bridgeInterface', reader) }
    case 'InterfaceNamePrefix': {
      const path = 'detectLocal.interfaceNamePrefix'
      return { kind: 'InterfaceNamePrefix', prefix: readText(section.interfaceNamePrefix, path, reader) }
    }
    default:
      reader.note(
        'proxy-config.bad-value',
        'detectLocalMode',
        `${JSON.stringify(mode)} is no way to detect local traffic`,
      )
      return undefined
  }
}

function readCidrs(text: string, path: string, { note }: Reader): readonly string[] {
  const parts = text.split(',').filter((part) => part !== '')
  return parts.filter((part) => {
    const isCidr = parsePrefix(part) !== undefined
    if (!isCidr) note('proxy-config.bad-value', path, `"${part}" is not a CIDR`)
    return isCidr
  })
}

function readAddresses(value: unknown, reader: Reader): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined
  if (!Array.isArray(value)) {
    reader.note('proxy-config.bad-value', 'nodePortAddresses', 'it is not a list')
    return undefined
  }
  const texts = value.map(String)
  if (texts.length === 1 && texts[0] === 'primary') return texts
  return readCidrs(texts.join(','), 'nodePortAddresses', reader)
}

function readSection(config: Fields, name: string, { note }: Reader): Fields {
  const section = config[name]
  if (section === undefined || section === null) return {}
  if (isFields(section)) return section
  note('proxy-config.bad-value', name, 'it is not a mapping')
  return {}
}

function readBoolean(value: unknown, path: string, { note }: Reader): boolean | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'boolean') return value
  note('proxy-config.bad-value', path, `${JSON.stringify(value)} is neither true nor false`)
  return undefined
}

function readBit(value: unknown, path: string, { note }: Reader): number | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 31) return value
  note('proxy-config.bad-value', path, `${JSON.stringify(value)} is not a bit from 0 to 31`)
  return undefined
}

function readText(value: unknown, path: string, { note }: Reader): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value
  note('proxy-config.bad-value', path, `${JSON.stringify(value)} is not text`)
  return ''
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
