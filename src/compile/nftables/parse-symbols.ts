/** The names that nft has for numbers, a table a data type; `nft describe` prints the same tables. */

export type SymbolTable = {
  readonly numbers: ReadonlyMap<string, number>
  /** The first of several names of a number. */
  readonly names: ReadonlyMap<number, string>
}

/** `name=number …`; a name without a number has one more than the one before. */
function table(text: string): SymbolTable {
  const numbers = new Map<string, number>()
  const names = new Map<number, string>()
  let number = -1
  for (const entry of text.trim().split(/\s+/)) {
    const [name = '', value] = entry.split('=')
    number = value === undefined ? number + 1 : Number(value)
    numbers.set(name, number)
    if (!names.has(number)) names.set(number, name)
  }
  return { numbers, names }
}

/** Types whose values are one name of many. */
export const symbolTables: ReadonlyMap<string, SymbolTable> = new Map([
  ['ct_dir', table('original=0 reply')],
  ['nf_proto', table('ipv4=2 ipv6=10')],
  ['pkt_type', table('host=0 unicast=0 broadcast multicast other')],
  ['iface_type', table('ether=1 ppp=0x200 ipip=0x300 ipip6 loopback=0x304 sit=0x308 ipgre=0x30a')],
  ['ether_type', table('ip=0x0800 arp=0x0806 ip6=0x86dd 8021q=0x8100 8021ad=0x88a8 vlan=0x8100')],
  ['arp_op', table('request=1 reply rrequest rreply inrequest=8 inreply nak')],
  [
    'fib_addrtype',
    table('unspec=0 unicast local broadcast anycast multicast blackhole unreachable prohibit throw nat xresolve'),
  ],
  ['ecn', table('not-ect=0 ect1 ect0 ce')],
  [
    'dscp',
    table(`cs0=0 df=0 be=0 lephb=1 cs1=8 af11=0x0a af12=0x0c af13=0x0e cs2=0x10 af21=0x12 af22=0x14 af23=0x16 cs3=0x18
      af31=0x1a af32=0x1c af33=0x1e cs4=0x20 af41=0x22 af42=0x24 af43=0x26 cs5=0x28 va=0x2c ef=0x2e cs6=0x30 cs7=0x38`),
  ],
  [
    'icmp_type',
    table(`echo-reply=0 destination-unreachable=3 source-quench redirect echo-request=8 router-advertisement
      router-solicitation time-exceeded parameter-problem timestamp-request timestamp-reply info-request info-reply
      address-mask-request address-mask-reply`),
  ],
  [
    'icmp_code',
    table(`net-unreachable=0 host-unreachable prot-unreachable port-unreachable frag-needed net-prohibited=9
      host-prohibited admin-prohibited=13`),
  ],
  [
    'icmpv6_type',
    table(`destination-unreachable=1 packet-too-big time-exceeded parameter-problem echo-request=128 echo-reply
      mld-listener-query mld-listener-report mld-listener-done mld-listener-reduction=132 nd-router-solicit
      nd-router-advert nd-neighbor-solicit nd-neighbor-advert nd-redirect router-renumbering ind-neighbor-solicit=141
      ind-neighbor-advert mld2-listener-report`),
  ],
  ['icmpv6_code', table('no-route=0 admin-prohibited addr-unreachable=3 port-unreachable policy-fail reject-route')],
  ['icmpx_code', table('no-route=0 port-unreachable host-unreachable admin-prohibited')],
  [
    'igmp_type',
    table(`membership-query=17 membership-report-v1 membership-report-v2=22 leave-group membership-report-v3=34`),
  ],
  ['dccp_pkttype', table('request=0 response data ack dataack closereq close reset sync syncack')],
  [
    'mh_type',
    table(`binding-refresh-request=0 home-test-init careof-test-init home-test careof-test binding-update
      binding-acknowledgement binding-error fast-binding-update fast-binding-acknowledgement
      fast-binding-advertisement experimental-mobility-header home-agent-switch-message`),
  ],
  ['day', table('Sunday=0 Monday Tuesday Wednesday Thursday Friday Saturday')],
  ['devgroup', table('default=0')],
  [
    'inet_proto',
    table(`ip=0 icmp igmp ggp ipencap st tcp egp=8 igp pup=12 udp=17 hmp=20 xns-idp=22 rdp=27 iso-tp4=29 dccp=33 xtp=36
      ddp idpr-cmtp ipv6=41 ipv6-route=43 ipv6-frag idrp rsvp gre esp=50 ah skip=57 ipv6-icmp icmpv6=58 ipv6-nonxt=59
      ipv6-opts rspf=73 vmtp=81 eigrp=88 ospf ospfigp=89 ax.25=93 ipip etherip=97 encap pim=103 ipcomp=108 comp=108
      vrrp=112 l2tp=115 isis=124 sctp=132 fc mobility-header=135 mh=135 udplite mpls-in-ip manet shim6=140 wesp rohc
      ethernet mptcp=262`),
  ],
  [
    'inet_service',
    table(`ftp-data=20 ftp ssh telnet smtp=25 domain=53 bootps=67 bootpc tftp http=80 kerberos=88 pop3=110 sunrpc
      ident=113 ntp=123 epmap=135 netbios-ns=137 netbios-dgm netbios-ssn imap2=143 snmp=161 snmp-trap bgp=179 ldap=389
      https=443 microsoft-ds=445 kpasswd=464 submissions=465 isakmp=500 syslog=514 printer=515 router=520
      dhcpv6-client=546 dhcpv6-server rtsp=554 submission=587 ipp=631 ldaps=636 domain-s=853 rsync=873 imaps=993
      pop3s=995 socks=1080 openvpn=1194 ms-sql-s=1433 radius=1812 radius-acct nfs=2049 mysql=3306 ms-wbt-server=3389
      ipsec-nat-t=4500 iax=4569 sip=5060 sip-tls xmpp-client=5222 xmpp-server=5269 mdns=5353 postgresql=5432 amqp=5672
      redis=6379 http-alt=8080 bacula-dir=9101 zabbix-agent=10050`),
  ],
])

/** Types whose values are several names together, a bit each. */
export const flagTables: ReadonlyMap<string, SymbolTable> = new Map([
  ['ct_state', table('invalid=1 established=2 related=4 new=8 untracked=64')],
  [
    'ct_status',
    table('expected=1 seen-reply=2 assured=4 confirmed=8 snat=16 dnat=32 dying=512 fixed-timeout=1024 helper=8192'),
  ],
  [
    'ct_event',
    table(`new=1 related=2 destroy=4 reply=8 assured=16 protoinfo=32 helper=64 mark=128 seqadj=256 secmark=512
      label=1024`),
  ],
  ['tcp_flag', table('fin=1 syn=2 rst=4 psh=8 ack=16 urg=32 ecn=64 ece=64 cwr=128')],
])
