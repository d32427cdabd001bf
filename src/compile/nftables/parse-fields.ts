/** The words that stand behind a protocol, behind `meta`, behind `ct`: by them a selector is told from a value. */

type Fields = ReadonlyMap<string, ReadonlySet<string>>

function wordsOf(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/))
}

function fieldsOf(table: Readonly<Record<string, string>>): Fields {
  return new Map(Object.entries(table).map(([name, words]) => [name, wordsOf(words)]))
}

export const payloadFields: Fields = fieldsOf({
  ether: 'saddr daddr type',
  vlan: 'id cfi dei pcp type',
  arp: 'htype ptype hlen plen operation',
  ip: 'version hdrlength dscp ecn length id frag-off ttl protocol checksum saddr daddr',
  ip6: 'version dscp ecn flowlabel length nexthdr hoplimit saddr daddr',
  icmp: 'type code checksum id sequence gateway mtu',
  icmpv6: 'type code checksum parameter-problem packet-too-big mtu id sequence max-delay taddr daddr',
  igmp: 'type checksum mrt group',
  tcp: 'sport dport sequence ackseq doff reserved flags window checksum urgptr',
  udp: 'sport dport length checksum',
  udplite: 'sport dport cscov checksum',
  sctp: 'sport dport vtag checksum',
  dccp: 'sport dport type',
  th: 'sport dport',
  ah: 'nexthdr hdrlength reserved spi sequence',
  esp: 'spi sequence',
  comp: 'nexthdr flags cpi',
  gre: 'version flags protocol',
})

/** IPv6 extension headers. */
export const extensionFields: Fields = fieldsOf({
  hbh: 'nexthdr hdrlength',
  dst: 'nexthdr hdrlength',
  rt: 'nexthdr hdrlength type seg-left',
  rt0: 'addr',
  rt2: 'addr',
  srh: 'last-entry flags tag sid seg-left',
  frag: 'nexthdr reserved frag-off reserved2 more-fragments id',
  mh: 'nexthdr hdrlength type reserved checksum',
})

export const metaKeys =
  wordsOf(`length protocol nfproto l4proto priority mark iif oif sdif iifname oifname sdifname iifkind
  oifkind ibrname obrname iiftype oiftype skuid skgid nftrace rtclassid secmark pkttype cpu iifgroup oifgroup cgroup
  random ipsec time day hour ibrpvid ibrvproto ibrhwaddr broute`)

/** These stand without `meta` before them too. */
export const plainMetaKeys =
  wordsOf(`mark iif iifname iiftype oif oifname oiftype skuid skgid nftrace rtclassid ibriport
  ibridgename obriport obridgename pkttype cpu iifgroup oifgroup cgroup ibrname obrname`)

export const ctKeys =
  wordsOf(`state direction status mark secmark expiration helper l3proto protocol proto-src proto-dst
  saddr daddr label bytes packets avgpkt zone event id`)

export const tcpOptionFields = wordsOf('kind length size count left right tsval tsecr subtype')

export const ipOptionFields = wordsOf('type length value ptr addr')

export const chunkFields = wordsOf(`type flags length tsn stream ssn ppid init-tag a-rwnd num-outbound-streams
  num-inbound-streams initial-tsn cum-tsn-ack num-gap-ack-blocks num-dup-tsns lowest-tsn seqno new-cum-tsn`)
