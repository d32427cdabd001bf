/** Which proxy leads to a cluster: that of its kubeconfig, else what the environment says for its address. */
import { BlockList, isIP } from 'node:net'
import { Failure } from '#base/failure'
import type { Environment } from './cluster-config'

/** Empty for none. golang.org/x/net/http/httpproxy: addresses of this machine have none from the environment. */
export function proxyOf(configured: string, server: URL, environment: Environment): string {
  const asked = configured || fromEnvironment(server, environment)
  if (asked === '') return ''
  const url = asked.includes('://') ? asked : `http://${asked}`
  if (URL.canParse(url) && /^(?:https?|socks5?h?):$/.test(new URL(url).protocol)) return url
  // It may hold a password.
  const whose = configured === '' ? 'the environment (HTTPS_PROXY, HTTP_PROXY)' : 'proxy-url of the kubeconfig'
  throw new Failure('cluster.bad-config', `${whose} names no proxy of http, https or socks5; write http://HOST:PORT`)
}

function fromEnvironment({ protocol, hostname }: URL, environment: Environment): string {
  const name = protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const proxy = environment[name] || environment[name.toLowerCase()] || ''
  if (proxy === '') return ''
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  if (host === 'localhost' || isLoopback(host)) return ''
  const exceptions = environment.NO_PROXY || environment.no_proxy || ''
  return exceptions.split(',').some((one) => excepts(one.trim().toLowerCase(), host)) ? '' : proxy
}

function isLoopback(host: string): boolean {
  return host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

/** `*`, an address, a range, a domain with those below it, or with a leading dot those alone. */
function excepts(pattern: string, host: string): boolean {
  if (pattern === '') return false
  if (pattern === '*') return true
  const plain = pattern.replace(/:\d+$/, '')
  const [address = '', length] = plain.split('/')
  const family = isIP(address)
  if (family !== 0 && length !== undefined) {
    const isLength = /^\d{1,3}$/.test(length) && Number(length) <= (family === 4 ? 32 : 128)
    if (!isLength || isIP(host) !== family) return false
    const ranges = new BlockList()
    ranges.addSubnet(address, Number(length), family === 4 ? 'ipv4' : 'ipv6')
    return ranges.check(host, family === 4 ? 'ipv4' : 'ipv6')
  }
  if (isIP(pattern) !== 0 || family !== 0) return pattern === host || address === host
  return plain.startsWith('.') ? host.endsWith(plain) : host === plain || host.endsWith(`.${plain}`)
}
