/** Every number that a broker can be told, by environment or flag: its name, its default, its bounds. */

type NumberSetting = {
  readonly environment: string
  readonly flag: string
  readonly fallback: number
  readonly least: number
  readonly most: number
  /** Zero is below `least` and means that the thing is off. */
  readonly zeroIsOff?: true
  readonly meaning: string
}

/** The environment names of the passes are those of the API that this broker is compatible with. */
export const numberSettings = {
  lateResolveIntervalSeconds: {
    environment: 'PEER_LATE_RESOLVE_INTERVAL_SECS',
    flag: 'late-resolve-interval',
    fallback: 60,
    least: 5,
    most: 86_400,
    meaning: 'seconds between two late-resolve passes and stale-alive sweeps',
  },
  lateResolveWindowSeconds: {
    environment: 'PEER_LATE_RESOLVE_WINDOW_SECS',
    flag: 'late-resolve-window',
    fallback: 600,
    least: 1,
    most: 86_400,
    zeroIsOff: true,
    meaning: 'seconds for which a flow without a peer is looked up again; 0 never looks again',
  },
  staleAliveSeconds: {
    environment: 'PEER_STALE_ALIVE_SECS',
    flag: 'stale-alive',
    fallback: 900,
    least: 1,
    most: 31_536_000,
    zeroIsOff: true,
    meaning: 'seconds without a post after which a pod counts as dead; 0 never',
  },
  flowRetentionDays: {
    environment: 'POD_TRAFFIC_RETENTION_DAYS',
    flag: 'flow-retention-days',
    fallback: 14,
    least: 1,
    most: 3650,
    zeroIsOff: true,
    meaning: 'days that flows are kept after they were last seen; 0 keeps them',
  },
  verdictRetentionDays: {
    environment: 'AUDIT_VERDICTS_RETENTION_DAYS',
    flag: 'verdict-retention-days',
    fallback: 30,
    least: 1,
    most: 3650,
    zeroIsOff: true,
    meaning: 'days that dead pods and audit verdicts are kept; 0 keeps verdicts, and dead pods for 7 days',
  },
  retentionIntervalSeconds: {
    environment: 'POD_TRAFFIC_RETENTION_INTERVAL_SECS',
    flag: 'retention-interval',
    fallback: 3600,
    least: 60,
    most: 86_400,
    meaning: 'seconds between two retention passes; the first comes a minute after the start',
  },
  retentionBatchRows: {
    environment: 'POD_TRAFFIC_RETENTION_BATCH',
    flag: 'retention-batch',
    fallback: 5000,
    least: 100,
    most: 100_000,
    meaning: 'rows that retention removes in one statement',
  },
  foldIntervalSeconds: {
    environment: 'BROKER_FOLD_INTERVAL_SECS',
    flag: 'fold-interval',
    fallback: 15,
    least: 5,
    most: 3600,
    meaning: 'seconds between two foldings of new flows into the edges of the map',
  },
  auditIntervalSeconds: {
    environment: 'BROKER_AUDIT_INTERVAL_SECS',
    flag: 'audit-interval',
    fallback: 15,
    least: 1,
    most: 3600,
    meaning: 'seconds between two passes that judge new flows by the policies in audit mode',
  },
  futureToleranceSeconds: {
    environment: 'BROKER_FUTURE_TOLERANCE_SECS',
    flag: 'future-tolerance',
    fallback: 300,
    least: 0,
    most: 86_400,
    meaning: 'seconds that a flow may lie ahead of the broker’s clock; later ones are refused by name',
  },
  statementTimeoutMs: {
    environment: 'DB_STATEMENT_TIMEOUT_MS',
    flag: 'statement-timeout-ms',
    fallback: 30_000,
    least: 100,
    most: 3_600_000,
    zeroIsOff: true,
    meaning: 'milliseconds after which the database ends a statement; 0 never',
  },
  poolSize: {
    environment: 'DB_POOL_SIZE',
    flag: 'pool-size',
    fallback: 8,
    least: 2,
    most: 200,
    meaning: 'connections to PostgreSQL, besides those for large batches, health and live events',
  },
  batchConnections: {
    environment: 'DB_BATCH_CONNECTIONS',
    flag: 'batch-connections',
    fallback: 2,
    least: 1,
    most: 100,
    meaning: 'batches of 100 rows and more that PostgreSQL stores at once; the others wait their turn',
  },
  bodyLimitBytes: {
    environment: 'BROKER_BODY_LIMIT_BYTES',
    flag: 'body-limit',
    fallback: 16_777_216,
    least: 65_536,
    most: 268_435_456,
    meaning: 'bytes that a request body may have; longer ones get 413',
  },
  batchLimitRows: {
    environment: 'BROKER_BATCH_LIMIT_ROWS',
    flag: 'batch-limit',
    fallback: 10_000,
    least: 1,
    most: 100_000,
    meaning: 'rows that a batch may have; longer ones get 413',
  },
  requestTimeoutSeconds: {
    environment: 'BROKER_REQUEST_TIMEOUT_SECS',
    flag: 'request-timeout',
    fallback: 30,
    least: 1,
    most: 3600,
    meaning: 'seconds for a request to arrive, and for its answer to begin',
  },
  headerTimeoutSeconds: {
    environment: 'BROKER_HEADER_TIMEOUT_SECS',
    flag: 'header-timeout',
    fallback: 10,
    least: 1,
    most: 600,
    meaning: 'seconds for a request’s header to arrive; slower clients are cut off',
  },
  maxConnections: {
    environment: 'BROKER_MAX_CONNECTIONS',
    flag: 'max-connections',
    fallback: 12_000,
    least: 10,
    most: 1_000_000,
    meaning: 'connections at once; further ones are closed',
  },
  requestsPerMinute: {
    environment: 'BROKER_REQUESTS_PER_MINUTE',
    flag: 'requests-per-minute',
    fallback: 12_000,
    least: 1,
    most: 10_000_000,
    zeroIsOff: true,
    meaning: 'requests a minute from one address; more get 429; 0 is no limit',
  },
  maxStreams: {
    environment: 'BROKER_MAX_STREAMS',
    flag: 'max-streams',
    fallback: 256,
    least: 1,
    most: 100_000,
    meaning: 'live streams at once; further ones get 503',
  },
  streamBufferBytes: {
    environment: 'BROKER_STREAM_BUFFER_BYTES',
    flag: 'stream-buffer',
    fallback: 1_048_576,
    least: 16_384,
    most: 67_108_864,
    meaning: 'bytes that may wait for one live stream; a client slower than that is dropped',
  },
  heartbeatSeconds: {
    environment: 'BROKER_HEARTBEAT_SECS',
    flag: 'heartbeat',
    fallback: 15,
    least: 1,
    most: 600,
    meaning: 'seconds between two signs of life in a live stream',
  },
} as const satisfies Readonly<Record<string, NumberSetting>>

export type SettingName = keyof typeof numberSettings

/** Numbers in the unit that the name ends in; 0 is off where the table says so. */
export type Settings = { readonly [Name in SettingName]: number }

export type GivenFlags = { readonly [Name in SettingName]?: string | undefined }

export type ReadSettings = { readonly settings: Settings; readonly warnings: readonly string[] }

const names = Object.keys(numberSettings) as readonly SettingName[]

/** A flag beats the environment; a value that cannot be used becomes the default or the nearest bound, with a warning. */
export function readSettings(
  environment: Readonly<Record<string, string | undefined>>,
  flags: GivenFlags = {},
): ReadSettings {
  const warnings: string[] = []
  const read = (name: SettingName): number => {
    const setting: NumberSetting = numberSettings[name]
    const flag = flags[name]
    const source = flag === undefined ? setting.environment : `--${setting.flag}`
    const { value, warning } = readNumber(setting, flag ?? environment[setting.environment], source)
    if (warning !== undefined) warnings.push(warning)
    return value
  }
  const settings = Object.fromEntries(names.map((name) => [name, read(name)])) as Settings
  return { settings, warnings }
}

function readNumber(
  { fallback, least, most, zeroIsOff }: NumberSetting,
  text: string | undefined,
  source: string,
): { readonly value: number; readonly warning?: string } {
  const trimmed = text?.trim() ?? ''
  if (trimmed === '') return { value: fallback }
  if (!/^\d{1,15}$/.test(trimmed)) {
    return { value: fallback, warning: `${source} is ${JSON.stringify(text)}, no whole number; ${fallback} is used` }
  }
  const number = Number(trimmed)
  if (number === 0 && zeroIsOff === true) return { value: 0 }
  const value = Math.min(Math.max(number, least), most)
  if (value === number) return { value }
  return { value, warning: `${source} is ${number}, outside ${least} to ${most}; ${value} is used` }
}
