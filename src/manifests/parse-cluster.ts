/** From one text straight to a cluster, for callers that have no files: the page in the browser, and tests. */
import type { Parsed } from '#base/finding'
import { type Cluster, emptyCluster } from '#model/cluster'
import { type BuildOptions, buildCluster } from './build-cluster'
import { manifestFinding } from './findings'
import { parseManifestText } from './parse-text'

/** A text of which nothing can be used gives an empty cluster and a finding. */
export function parseCluster(text: string, file = 'input', options: BuildOptions = {}): Parsed<Cluster> {
  const parsed = parseManifestText(text, file)
  if (parsed.refusal !== undefined) {
    const { message } = parsed.refusal
    return {
      value: emptyCluster,
      findings: [manifestFinding('manifest.unreadable-text', { message, origin: { file } })],
    }
  }
  const cluster = buildCluster(parsed.value, options)
  return { value: cluster.value, findings: [...parsed.findings, ...cluster.findings] }
}
