/** The broker’s log: JSON lines without tokens, headers or query strings. */
import { type Logger, pino, type SerializedError } from 'pino'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

export type { Logger }

export function openLog(write: (line: string) => void, level: LogLevel): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: [
          'token',
          'password',
          'authorization',
          '*.token',
          '*.password',
          '*.authorization',
          'req.headers',
          'headers',
        ],
        censor: '(hidden)',
      },
      serializers: {
        // A query may hold what a client should have sent in a header.
        req: (request: { method?: string; url?: string }) => ({
          method: request.method,
          path: request.url?.split('?')[0],
        }),
        err: (error: Error) => withoutPasswords(pino.stdSerializers.err(error)),
      },
    },
    { write },
  )
}

/** The stack repeats the message. */
function withoutPasswords(told: SerializedError): SerializedError {
  return { ...told, message: hidePasswords(told.message), stack: hidePasswords(told.stack) }
}

/** `postgres://user:secret@host/db` → `postgres://user:…@host/db`, and `?password=secret` → `?password=…`. */
export function hidePasswords(text: string): string {
  return text.replace(/(\w+:\/\/[^\s:/@]*):[^\s@/]*@/g, '$1:…@').replace(/([?&](?:ssl)?password=)[^&\s]*/gi, '$1…')
}
