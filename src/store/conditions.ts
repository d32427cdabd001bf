/** Builds a statement's conditions with its parameters numbered as they come. */
import type { Value } from './engine'

export class Conditions {
  readonly values: Value[] = []
  readonly #all: string[] = []

  /** The parameter's place in the statement. */
  parameter(value: Value): string {
    this.values.push(value)
    return `$${this.values.length}`
  }

  instant(value: number): string {
    return `(timestamptz 'epoch' + ${this.parameter(value)}::int8 * interval '1 microsecond')`
  }

  add(condition: string): void {
    this.#all.push(condition)
  }

  /** Adds `column = value` unless there is nothing to compare with. */
  equal(column: string, value: Value | undefined): void {
    if (value !== undefined) this.add(`${column} = ${this.parameter(value)}`)
  }

  get where(): string {
    return this.#all.length === 0 ? '' : `where ${this.#all.join(' and ')}`
  }
}
