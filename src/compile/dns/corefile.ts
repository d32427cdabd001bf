/** A Corefile as data: server blocks with their zones and ports, and in each the plugins with arguments and block lines. */

export type Directive = {
  readonly name: string
  readonly args: readonly string[]
  readonly block: readonly Directive[]
  readonly line: number
}

export type ServerBlock = {
  /** Folded, with the closing dot. */
  readonly zones: readonly string[]
  readonly port: number
  readonly transport: string
  readonly directives: readonly Directive[]
  readonly line: number
}

export type Corefile = { readonly blocks: readonly ServerBlock[] }
