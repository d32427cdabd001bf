/** Every finding about files and folders: its code, how bad it is, and what it means. */
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
} as const satisfies FindingTable

export type SourceFindingCode = keyof typeof sourceFindings

export function sourceFinding(code: SourceFindingCode, rest: Omit<Finding, 'code' | 'severity'>): Finding {
  return { code, severity: sourceFindings[code].severity, ...rest }
}
