/** The one sentence that says what is wrong: the first broken layer's first finding, as what it breaks breaks the rest. */
import { countOf } from '#base/text'
import type { ExplainFinding, Layer } from './explanation'
import type { ServiceView } from './service-view'

export function writeSentence(view: ServiceView, layers: readonly Layer[]): string {
  const findings = layers.flatMap((layer) => layer.findings)
  const of = (severity: ExplainFinding['severity']): readonly ExplainFinding[] =>
    findings.filter((finding) => finding.severity === severity)
  const [errors, warnings] = [of('error'), of('warning')]
  const [worst] = errors
  if (worst !== undefined) {
    const hangs = findings.find(({ code }) => code === 'explain.no-refusal')
    const effect = hangs === undefined || worst.code !== 'explain.no-endpoints' ? '' : `; ${hangs.message}`
    const more = `${effect}${errors.length === 1 ? '' : ` (${countOf(errors.length - 1, 'more error')} above)`}`
    return `${view.key}: ${endWithStop(`${worst.message}${more}`)}`
  }
  const [first] = warnings
  if (first !== undefined) {
    const more = warnings.length === 1 ? '' : ` (${countOf(warnings.length - 1, 'more warning')} above)`
    return `${view.key}: nothing is broken in what the input shows, but ${endWithStop(`${first.message}${more}`)}`
  }
  return `${view.key}: nothing is wrong in what the input shows.`
}

function endWithStop(text: string): string {
  return text.endsWith('.') ? text : `${text}.`
}
