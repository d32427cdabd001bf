/** Every finding about files, folders and live clusters: its code, how bad it is, and what it means. */
import type { Finding, FindingTable } from '#base/finding'

export const sourceFindings = {
  'source.unreadable-file': {
    severity: 'error',
    meaning: 'A file of a folder cannot be read, and is left out; the others are used.',
  },
  'source.foreign-file': {
    severity: 'warning',
    meaning: 'A file of a folder is empty or holds no Kubernetes objects, and is left out.',
  },
  'source.ignored-files': {
    severity: 'info',
    meaning:
      'Files of a folder were left aside: hidden ones, pipes and devices, and those that are not named as YAML, JSON or gzip files.',
  },
  'cluster.unread-kind': {
    severity: 'error',
    meaning:
      'Objects of a kind cannot be read from a live cluster: they may be there. What rests on them is not answered, or is told as unknown.',
  },
  'cluster.kind-not-served': {
    severity: 'info',
    meaning: 'A live cluster does not serve kinds that the command asks for, so that it has no such objects.',
  },
} as const satisfies FindingTable

export type SourceFindingCode = keyof typeof sourceFindings

export function sourceFinding(code: SourceFindingCode, rest: Omit<Finding, 'code' | 'severity'>): Finding {
  return { code, severity: sourceFindings[code].severity, ...rest }
}
