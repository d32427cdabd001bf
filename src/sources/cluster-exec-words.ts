/** What a credential plugin says on standard error: handed on line by line, without what looks like a secret. */
import { plainText } from '#base/text'

export type PluginWords = {
  readonly take: (text: string) => void
  /** The plugin is done; what is left of a line is said. */
  readonly end: () => void
}

export type PluginWordsOptions = {
  /** The name before each line. */
  readonly command: string
  readonly say: (sentence: string) => void
  /** What the kubeconfig gave the plugin in confidence. */
  readonly secrets: readonly string[]
}

/** A question to the user (`Password: `) ends in no line break. */
const promptMilliseconds = 300

/** A secret may come in two pieces: lines are looked at whole. */
export function openPluginWords({ command, say, secrets }: PluginWordsOptions): PluginWords {
  let rest = ''
  let isKey = false
  let timer: NodeJS.Timeout | undefined
  const tell = (line: string): void => {
    const isEdge = /-----(?:BEGIN|END) [A-Z ]+-----/.test(line)
    if (isEdge) isKey = line.includes('-----BEGIN ')
    else if (!isKey && line.trim() !== '') say(`${plainText(command)}: ${plainText(hideSecrets(line, secrets))}`)
  }
  const end = (): void => {
    clearTimeout(timer)
    tell(rest)
    rest = ''
  }
  return {
    take: (text) => {
      clearTimeout(timer)
      const lines = `${rest}${text}`.split(/\r?\n/)
      rest = lines.pop() ?? ''
      lines.forEach(tell)
      if (rest !== '') timer = setTimeout(end, promptMilliseconds)
    },
    end,
  }
}

const secretWords = 'token|secret|passw(?:or)?d|api[-_]?key|private[-_]?key|key[-_]?data|authorization'
/** `client_secret=x`, `"token": "x"`: what stands there is one, whatever it looks like. */
const assigned = new RegExp(`((?:${secretWords})["']?(?:=["']?|\\s*:\\s*["']))[^\\s"',}&]+`, 'gi')
/** `token: x` may be a reason instead: only what holds a digit, or is long, is taken for one. */
const told = new RegExp(`((?:${secretWords}):\\s*)(?=\\S*\\d|\\S{20})\\S{6,}`, 'gi')

function hideSecrets(line: string, secrets: readonly string[]): string {
  return secrets
    .reduce((text, secret) => text.replaceAll(secret, '…'), line)
    .replaceAll(/\b(bearer|basic) +(?=\S*\d|\S{20})\S+/gi, '$1 …')
    .replaceAll(assigned, '$1…')
    .replaceAll(told, '$1…')
    .replaceAll(/\beyJ[\w-]+(?:\.[\w-]*)*/g, '…')
    .replaceAll(/[\w+/=.-]{60,}/g, '…')
    .replaceAll(/[\w+=-]{32,}/g, hideOpaque)
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Not the id of an application or a tenant, nor a long name without digits. */
function hideOpaque(word: string): string {
  return /\d/.test(word) && /[a-z]/i.test(word) && !uuid.test(word) ? '…' : word
}
