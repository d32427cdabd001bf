/** ConfigMaps: their texts. */
import type { ConfigMap } from '#model/cluster'
import type { Meta } from '#model/meta'
import { type Fields, mapAt, textAt } from './fields'

export function parseConfigMap(root: Fields, meta: Meta): ConfigMap {
  const fields = mapAt(root, 'data')
  const data: Record<string, string> = {}
  for (const key of Object.keys(fields.values)) data[key] = textAt(fields, key) ?? ''
  return { meta, data }
}
