/** Two inputs to compare, of which one holds policies alone. */
import type { Finding } from '#base/finding'
import { lintFindings } from './findings'
import type { Matrix } from './matrix'

/** An input by its name, and its matrix. */
export type DiffSide = { readonly file: string; readonly matrix: Matrix }

/** Without workloads a side has no connections, whatever its policies say: all of the other side's differ. */
export function noteEmptySide(before: DiffSide, after: DiffSide): readonly Finding[] {
  const empty = [before, after].filter(({ matrix }) => matrix.workloads.length === 0)
  const [side] = empty
  if (side === undefined || empty.length === 2) return []
  const other = side === after ? before : after
  return [
    {
      code: 'policy.no-workloads',
      severity: lintFindings['policy.no-workloads'].severity,
      origin: { file: side.file },
      message: `no pod and no workload is in this input, so every connection of ${other.file} counts as ${side === after ? 'removed' : 'added'}`,
      hint: `policies are compared where both inputs hold the cluster’s objects: put its policies and those objects into one folder`,
    },
  ]
}
