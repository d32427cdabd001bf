/** Texts that are no objects but stand where objects should: what a command said in their place. */

/** `isError` when a command failed, so that the objects are missing. */
export type Recognised = { readonly message: string; readonly isError: boolean }

/** Characters of an error that are repeated. */
const mostShown = 200

const kubectlError =
  /^(?:Error from server\b|error: |Error: |Unable to connect to the server|The connection to the server |E\d{4} \d\d:)/
const remedies = [
  { sign: /\(Forbidden\)|\(Unauthorized\)|must be logged in/, remedy: 'run the command as a user who may read them' },
  {
    sign: /^Unable to connect|^The connection to|connection refused|i\/o timeout/,
    remedy: 'run the command again where the cluster can be reached',
  },
  { sign: /\(NotFound\)/, remedy: 'check the names in the command, and run it again' },
]

/** Undefined for what looks like none of them. Only the first line counts. */
export function recogniseText(text: string): Recognised | undefined {
  const [line = ''] = text
    .slice(0, 4000)
    .trimStart()
    .split(/[\r\n]/, 1)
  if (kubectlError.test(line)) {
    const remedy = remedies.find(({ sign }) => sign.test(line))?.remedy ?? 'run the command again'
    return {
      message: `it holds an error of kubectl (${JSON.stringify(line.length > mostShown ? `${line.slice(0, mostShown)}…` : line)}), not the objects; ${remedy}`,
      isError: true,
    }
  }
  const what = sorts.find(({ sign }) => sign.test(line))
  return what === undefined ? undefined : { message: what.message, isError: false }
}

const sorts = [
  {
    sign: /^No resources found\b/,
    message: 'kubectl found no objects and said so; check the namespace (-A takes all), and run the command again',
  },
  {
    sign: /^(?:NAMESPACE {2,})?NAME {2,}[A-Z]/,
    message: 'it is a table of kubectl, not the objects; run the command again with -o yaml or -o json',
  },
  {
    sign: /^Name: {2,}\S/,
    message: 'it is the output of kubectl describe, not the objects; take them with kubectl get -o yaml',
  },
  {
    sign: /^<(?:!doctype\b|html\b|head\b|\?xml\b)/i,
    message:
      'it is a web page (HTML) or XML, not objects; check the address it was taken from, which may ask to log in',
  },
] as const
