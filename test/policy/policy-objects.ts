/** Short ways to write the objects that policies are asked about, as an API server prints them. */
export type Raw = { readonly [key: string]: unknown }

let address = 0

/** `x/a`; of `status` an ended phase, of `spec` what the pod is beside its containers. */
export function pod(
  path: string,
  labels: Raw = {},
  { ports = [], ip, phase = 'Running', ...spec }: { readonly [key: string]: unknown } = {},
): Raw {
  const [namespace, name] = path.split('/')
  address += 1
  const podIP = ip ?? `10.244.${address >> 8}.${address & 255}`
  const status = { phase, podIP, podIPs: [{ ip: podIP }], conditions: [{ type: 'Ready', status: 'True' }] }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name, labels },
    spec: { nodeName: 'n1', containers: [{ name: 'main', ports }], ...spec },
    status: ip === null ? { phase } : status,
  }
}

export function namespace(name: string, labels: Raw = {}): Raw {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }
}

export function node(name: string, ip: string, labels: Raw = {}): Raw {
  const status = { addresses: [{ type: 'InternalIP', address: ip }], conditions: [{ type: 'Ready', status: 'True' }] }
  return { apiVersion: 'v1', kind: 'Node', metadata: { name, labels }, status }
}

/** `x/deny`. */
export function networkPolicy(path: string, spec: Raw): Raw {
  const [namespace, name] = path.split('/')
  return { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { namespace, name }, spec }
}

export function adminPolicy(name: string, priority: number, spec: Raw): Raw {
  return tierPolicy('AdminNetworkPolicy', name, { priority, subject: { namespaces: {} }, ...spec })
}

export function baselinePolicy(spec: Raw): Raw {
  return tierPolicy('BaselineAdminNetworkPolicy', 'default', { subject: { namespaces: {} }, ...spec })
}

export function clusterPolicy(name: string, tier: 'Admin' | 'Baseline', spec: Raw): Raw {
  return tierPolicy('ClusterNetworkPolicy', name, { tier, priority: 10, subject: { namespaces: {} }, ...spec })
}

function tierPolicy(kind: string, name: string, spec: Raw): Raw {
  const version = kind === 'ClusterNetworkPolicy' ? 'v1alpha2' : 'v1alpha1'
  return { apiVersion: `policy.networking.k8s.io/${version}`, kind, metadata: { name }, spec }
}

export const everyPod = { namespaces: {} }
