/** A model object while it is being built: the same fields, still open. */
export type Writable<T> = { -readonly [K in keyof T]: T[K] }
