/** A strict reader of Prometheus' text format 0.0.4, and what `promtool check metrics` says of names and help. */

export type ExposedSample = {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export type ExposedFamily = {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly samples: readonly ExposedSample[]
}

const nameOf = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const helpLine = new RegExp(`^# HELP (${nameOf}) (.+)$`)
const typeLine = new RegExp(`^# TYPE (${nameOf}) (counter|gauge|histogram|summary|untyped)$`)
/** Go, which reads it, takes NaN in any case; prom-client writes Nan. */
const sampleLine = new RegExp(`^(${nameOf})(?:\\{(.*)\\})? (-?[0-9.e+-]+|[Nn]a[Nn]|[+-]Inf)$`)
const label = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)/

/** Throws at the first line that Prometheus would refuse. */
export function parseExposition(text: string): readonly ExposedFamily[] {
  if (!text.endsWith('\n')) throw new Error('the last line does not end')
  const families = new Map<string, { name: string; help: string; type: string; samples: ExposedSample[] }>()
  const seen = new Set<string>()
  let current: string | undefined
  for (const line of text.split('\n')) {
    if (line === '') continue
    const help = helpLine.exec(line)
    const type = typeLine.exec(line)
    if (help !== null) {
      const name = String(help[1])
      if (families.has(name)) throw new Error(`a second HELP for ${name}`)
      families.set(name, { name, help: String(help[2]), type: '', samples: [] })
      current = name
    } else if (type !== null) {
      const family = families.get(String(type[1]))
      if (family === undefined || family.type !== '' || family.samples.length > 0) {
        throw new Error(`TYPE stands at the wrong place: ${line}`)
      }
      family.type = String(type[2])
    } else {
      const sample = parseSample(line)
      const family = families.get(current ?? '')
      const isOwn = family !== undefined && sample.name.replace(/_(sum|count|bucket)$/, '') === family.name
      if (family === undefined || !(isOwn || sample.name === family.name)) {
        throw new Error(`a sample stands outside its family: ${line}`)
      }
      if (family.type === '') throw new Error(`there is no TYPE before ${line}`)
      const key = `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`
      if (seen.has(key)) throw new Error(`a series stands twice: ${line}`)
      seen.add(key)
      family.samples.push(sample)
    }
  }
  return [...families.values()]
}

function parseSample(line: string): ExposedSample {
  const found = sampleLine.exec(line)
  if (found === null) throw new Error(`no sample: ${line}`)
  const labels: Record<string, string> = {}
  let rest = found[2] ?? ''
  while (rest !== '') {
    const one = label.exec(rest)
    if (one === null) throw new Error(`no label: ${rest}`)
    const [all, name = '', value = ''] = one
    if (name in labels) throw new Error(`the label ${name} stands twice: ${line}`)
    labels[name] = value.replaceAll(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped))
    rest = rest.slice(all.length)
  }
  const value = Number(String(found[3]).replace('Inf', 'Infinity').replace('Nan', 'NaN'))
  return { name: String(found[1]), labels, value }
}

/** The rules of `promtool check metrics` (client_golang, testutil/promlint) that names and help can break. */
export function lintFamilies(families: readonly ExposedFamily[]): readonly string[] {
  return families.flatMap(({ name, help, type, samples }) => {
    const labels = new Set(samples.flatMap((one) => Object.keys(one.labels)))
    return [
      help.trim() === '' ? `${name}: no help` : '',
      type === 'counter' && !name.endsWith('_total') ? `${name}: a counter without _total` : '',
      type !== 'counter' && name.endsWith('_total') ? `${name}: _total, and no counter` : '',
      /[A-Z:]/.test(name) ? `${name}: capitals or colons` : '',
      /_(gauge|counter|histogram|summary)(_|$)/.test(name) && !name.includes('_counter_read_errors')
        ? `${name}: its type in its name`
        : '',
      /_(milliseconds|ms|minutes|hours|kilobytes|kb|mb)(_|$)/.test(name) ? `${name}: no base unit` : '',
      ...[...labels].flatMap((one) => [
        /[A-Z]/.test(one) ? `${name}: the label ${one} has capitals` : '',
        one.startsWith('__') ? `${name}: the label ${one} is reserved` : '',
        ['le', 'quantile'].includes(one) && !['histogram', 'summary'].includes(type) ? `${name}: the label ${one}` : '',
      ]),
    ].filter((fault) => fault !== '')
  })
}
