/** The agent's log: a few levels of what pino's loggers have, so that tests may listen. */
import type { Logger } from 'pino'

export type AgentLog = Pick<Logger, 'info' | 'warn' | 'error' | 'debug'>
