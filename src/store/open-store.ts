/** Opens the store: a directory of its own, or a PostgreSQL by its URL. */
import { Failure } from '#base/failure'
import type { Store } from './store'

export type StoreOptions =
  | { readonly data: string }
  | {
      readonly database: string
      /** Connections: 8. */
      readonly poolSize?: number
      /** 0: none. 30 000 when absent. */
      readonly statementTimeoutMillis?: number
    }

export async function openStore(_options: StoreOptions): Promise<Store> {
  throw new Failure('database-unavailable', 'the store cannot be opened yet')
}
