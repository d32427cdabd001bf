/** The Cilium releases whose behaviour is told apart. */

export const ciliumVersions = ['1.16', '1.17', '1.18', '1.19'] as const

export type CiliumVersion = (typeof ciliumVersions)[number]

export const defaultCiliumVersion: CiliumVersion = '1.18'

export function isAtLeast(version: CiliumVersion, other: CiliumVersion): boolean {
  return ciliumVersions.indexOf(version) >= ciliumVersions.indexOf(other)
}
