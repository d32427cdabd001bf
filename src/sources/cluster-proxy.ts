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

function fromEnvironment({ protocol, hostname, port }: URL, environment: Environment): string {
  const name = protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const proxy = environment[name] || environment[name.toLowerCase()] || ''
  if (proxy === '') return ''
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  if (host === 'localhost' || isLoopback(host)) return ''
  const exceptions = environment.NO_PROXY || environment.no_proxy || ''
  const asked = { host, port: port || (protocol === 'https:' ? '443' : '80') }
  return exceptions.split(',').some((one) => excepts(one.trim().toLowerCase(), asked)) ? '' : proxy
}

function isLoopback(host: string): boolean {
  return host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

type Asked = { readonly host: string; readonly port: string }

/**
 * `*`, an address, a range, a domain with those below it, or with a leading dot or `*.` those alone; a port narrows all
 * but ranges. golang.org/x/net/http/httpproxy/proxy.go, config.init.
 */
function excepts(pattern: string, { host, port }: Asked): boolean {
  if (pattern === '*') return true
  const [, address = '', length = ''] = /^(.+)\/(\d{1,3})$/.exec(pattern) ?? []
  if (isIP(address) !== 0) return isWithin(host, address, Number(length))
  const [, bracketed, named, wanted = port] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d+))?$/.exec(pattern) ?? []
  const name = bracketed ?? named ?? pattern
  if (name === '' || wanted !== port) return false
  if (isIP(name) !== 0) return isWithin(host, name, isIP(name) === 4 ? 32 : 128)
  const domain = name.replace(/^\*\./, '.')
  return domain.startsWith('.') ? host.endsWith(domain) : host === domain || host.endsWith(`.${domain}`)
}

/** Addresses are compared as such: `fd00:0::1` is `fd00::1`. */
function isWithin(host: string, address: string, length: number): boolean {
  const family = isIP(address)
  if (isIP(host) !== family || length > (family === 4 ? 32 : 128)) return false
  const ranges = new BlockList()
  ranges.addSubnet(address, length, family === 4 ? 'ipv4' : 'ipv6')
  return ranges.check(host, family === 4 ? 'ipv4' : 'ipv6')
}
