/** The language that API objects are described in once: their types, CRDs and validators all come from such a schema. */

/** A rule that a schema's words cannot say: as CEL for the API server, and as a function for ourselves, which must agree. */
export type ValidationRule = {
  readonly cel: string
  readonly message: string
  /** What to do about it. */
  readonly hint: string
  /** What breaks the rule; `at` is the path below the value. Asked only of values that fit their schema otherwise. */
  readonly fault: (value: never) => Fault | undefined
}

export type Fault = { readonly at?: string; readonly message: string }

export type Described = { readonly description?: string; readonly rules?: readonly ValidationRule[] }

export type TextSchema = Described & {
  readonly kind: 'text'
  readonly words?: readonly string[]
  readonly pattern?: string
  /** What the pattern wants, for a sentence. */
  readonly noun?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly format?: 'date-time'
}

export type NumberSchema = Described & { readonly kind: 'number'; readonly from: number; readonly to: number }

export type FlagSchema = Described & { readonly kind: 'flag'; readonly default?: boolean }

// Interfaces, as types of these shapes would refer to themselves.
export interface ListSchema extends Described {
  readonly kind: 'list'
  readonly item: Schema
  readonly maxItems: number
  readonly minItems?: number
  /** How server-side apply merges: whole, by value, or by the named keys of its items. */
  readonly merge: 'atomic' | 'set' | { readonly keys: readonly string[] }
}

export interface MapSchema extends Described {
  readonly kind: 'map'
  readonly fields: MapFields
  /** Whether fields that the schema does not name are kept, unread: others own parts of the object. */
  readonly isOpen?: boolean
}

export interface MapFields {
  readonly [name: string]: Schema
}

/** A field that may be absent. */
export interface OptionalSchema {
  readonly kind: 'optional'
  readonly of: Schema
}

export type PresentSchema = TextSchema | NumberSchema | FlagSchema | ListSchema | MapSchema
export type Schema = PresentSchema | OptionalSchema

type RequiredOf<Fields extends MapFields> = {
  [Name in keyof Fields]: Fields[Name] extends { readonly kind: 'optional' } ? never : Name
}[keyof Fields]

type OptionalOf<Fields extends MapFields> = Exclude<keyof Fields, RequiredOf<Fields>>

/** The type of the values that a schema takes. */
export type ValueOf<S> = S extends { readonly kind: 'optional'; readonly of: infer Of }
  ? ValueOf<Of>
  : S extends { readonly kind: 'text'; readonly words: readonly (infer Word)[] }
    ? Word
    : S extends { readonly kind: 'text' }
      ? string
      : S extends { readonly kind: 'number' }
        ? number
        : S extends { readonly kind: 'flag' }
          ? boolean
          : S extends { readonly kind: 'list'; readonly item: infer Item }
            ? readonly ValueOf<Item>[]
            : S extends { readonly kind: 'map'; readonly fields: infer Fields extends MapFields }
              ? ValueOfMap<Fields>
              : never

type ValueOfMap<Fields extends MapFields> = {
  readonly [Name in RequiredOf<Fields>]: ValueOf<Fields[Name]>
} & { readonly [Name in OptionalOf<Fields>]?: ValueOf<Fields[Name]> }

export function optional<const S extends Schema>(of: S): { readonly kind: 'optional'; readonly of: S } {
  return { kind: 'optional', of }
}

/** The schema without its being optional. */
export function presentOf(schema: Schema): PresentSchema {
  return schema.kind === 'optional' ? presentOf(schema.of) : schema
}

/** A kind of the API with its CRD's settings. */
export type ApiKind = {
  readonly kind: string
  readonly plural: string
  readonly shortNames: readonly string[]
  readonly description: string
  readonly spec: MapSchema
  readonly status: MapSchema
  /** Rules about the object whole: they see `metadata.name` beside its own fields. */
  readonly rules: readonly ValidationRule[]
  readonly columns: readonly PrintedColumn[]
}

export type PrintedColumn = {
  readonly name: string
  readonly path: string
  readonly type: 'string' | 'integer' | 'boolean' | 'date'
  readonly description?: string
  /** Shown with `-o wide` alone. */
  readonly isWide?: boolean
}
