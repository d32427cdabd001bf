/** CustomResourceDefinitions of the traffic policy kinds, made of the schemas that also give their types and validators. */
import { dump } from 'js-yaml'
import type { ApiKind, MapSchema, Schema, ValidationRule } from '#model/api-schema'
import { presentOf } from '#model/api-schema'
import { trafficGroup, trafficVersion } from '#model/traffic-policy'

type Json = { readonly [key: string]: unknown }

export function crdFileName({ plural }: ApiKind): string {
  return `${trafficGroup}_${plural}.yaml`
}

/** cidr() and isCIDR() came with 1.30, and an API server takes in new rules what the one before it knows. */
const oldest = '1.31'

export function printCrd(kind: ApiKind): string {
  const head = `# ${kind.description} Needs Kubernetes ${oldest} or later; made of src/model by npm run cases.\n`
  return head + dump(crdOf(kind), { noRefs: true, lineWidth: -1 })
}

function crdOf(kind: ApiKind): Json {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.plural}.${trafficGroup}` },
    spec: {
      group: trafficGroup,
      scope: 'Namespaced',
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.kind.toLowerCase(),
        shortNames: kind.shortNames,
      },
      versions: [
        {
          name: trafficVersion,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: kind.columns.map(({ name, path, type, description, isWide }) => ({
            name,
            type,
            jsonPath: path,
            ...(description !== undefined && { description }),
            ...(isWide === true && { priority: 1 }),
          })),
          schema: { openAPIV3Schema: rootSchema(kind) },
        },
      ],
    },
  }
}

function rootSchema({ description, spec, status, rules }: ApiKind): Json {
  return {
    type: 'object',
    description,
    ...(isNeeded(spec) && { required: ['spec'] }),
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: openApi(spec),
      status: openApi(status),
    },
    ...validations(rules),
  }
}

function isNeeded({ fields }: MapSchema): boolean {
  return Object.values(fields).some(({ kind }) => kind !== 'optional')
}

function openApi(given: Schema): Json {
  const schema = presentOf(given)
  const { description, rules = [] } = schema
  return { ...(description !== undefined && { description }), ...shapeOf(given), ...validations(rules) }
}

function shapeOf(given: Schema): Json {
  const schema = presentOf(given)
  switch (schema.kind) {
    case 'text': {
      const { words, pattern, minLength, maxLength, format } = schema
      return {
        type: 'string',
        ...(words !== undefined && { enum: words }),
        ...(format !== undefined && { format }),
        ...(minLength !== undefined && { minLength }),
        ...(maxLength !== undefined && { maxLength }),
        ...(pattern !== undefined && { pattern }),
      }
    }
    case 'number':
      return {
        type: 'integer',
        format: schema.to > 2 ** 31 ? 'int64' : 'int32',
        minimum: schema.from,
        maximum: schema.to,
      }
    case 'flag':
      return { type: 'boolean', ...(schema.default !== undefined && { default: schema.default }) }
    case 'list': {
      const { item, minItems, maxItems, merge } = schema
      const listType = typeof merge === 'string' ? merge : 'map'
      return {
        type: 'array',
        ...(minItems !== undefined && { minItems }),
        maxItems,
        'x-kubernetes-list-type': listType,
        ...(typeof merge !== 'string' && { 'x-kubernetes-list-map-keys': merge.keys }),
        items: openApi(item),
      }
    }
    case 'map': {
      const names = Object.keys(schema.fields)
      const required = names.filter((name) => schema.fields[name]?.kind !== 'optional')
      return {
        type: 'object',
        ...(schema.isOpen === true && { 'x-kubernetes-preserve-unknown-fields': true }),
        ...(required.length > 0 && { required }),
        properties: Object.fromEntries(Object.entries(schema.fields).map(([name, field]) => [name, openApi(field)])),
      }
    }
  }
  return schema satisfies never
}

function validations(rules: readonly ValidationRule[]): Json {
  if (rules.length === 0) return {}
  return { 'x-kubernetes-validations': rules.map(({ cel, message }) => ({ rule: cel, message })) }
}
