/** From objects in audit mode to worlds that flows are judged in: one for each way of reading policies. */
import { buildCluster } from '#manifests/build-cluster'
import { type CiliumVersion, ciliumVersions, defaultCiliumVersion } from '#model/cilium-version'
import type { AuditObject } from '#store/audit-store'
import { ciliumSemantics } from '#trace/policy/cilium-semantics'
import { kubernetesSemantics } from '#trace/policy/k8s-semantics'
import { type PolicyWorld, preparePolicies } from '#trace/policy/world'

export const semanticsWords = ['k8s', 'cilium'] as const

/** `k8s`, or `cilium-1.18`. */
export function semanticsText(semantics: (typeof semanticsWords)[number] = 'k8s', version?: CiliumVersion): string {
  return semantics === 'k8s' ? 'k8s' : `cilium-${version ?? defaultCiliumVersion}`
}

export function ciliumVersionOf(semantics: string): CiliumVersion | undefined {
  return ciliumVersions.find((version) => semantics === `cilium-${version}`)
}

/** Of policies of one semantics, and of what they read. */
export function worldOf(objects: readonly AuditObject[], semantics: string): PolicyWorld {
  const own = objects.filter((object) => object.semantics === semantics || object.semantics === '')
  const raw = own.map(({ kind, manifest }) => ({
    kind,
    apiVersion: typeof manifest.apiVersion === 'string' ? manifest.apiVersion : '',
    value: manifest,
    origin: { file: 'audit' },
  }))
  const { value: cluster } = buildCluster(raw)
  const version = ciliumVersionOf(semantics)
  return preparePolicies(cluster, {
    semantics: version === undefined ? kubernetesSemantics : ciliumSemantics(cluster, { version }),
  })
}
