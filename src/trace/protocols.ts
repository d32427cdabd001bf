/** Protocol names as iptables prints them, and their numbers. */

const numbers: Readonly<Record<string, number>> = {
  all: 0,
  icmp: 1,
  igmp: 2,
  ipencap: 4,
  tcp: 6,
  udp: 17,
  dccp: 33,
  ipv6: 41,
  gre: 47,
  esp: 50,
  ah: 51,
  'ipv6-icmp': 58,
  icmpv6: 58,
  icmp6: 58,
  vrrp: 112,
  sctp: 132,
  udplite: 136,
  mh: 135,
  'ipv6-mh': 135,
}

/** 0 is every protocol; undefined for a name that is not known. */
export function protocolNumber(text: string): number | undefined {
  if (/^\d+$/.test(text)) return Number(text)
  return numbers[text.toLowerCase()]
}
