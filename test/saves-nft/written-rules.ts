/** Rules as people write them, by the place where a kernel takes them: nft lists most of them in other words. */
import type { Hook, TableFamily } from '#compile/nftables/ruleset'

type Place = { readonly family: TableFamily; readonly type: 'filter' | 'nat'; readonly hook: Hook }

export type WrittenRules = Place & { readonly rules: readonly string[] }

/** A rule a line. */
const places: readonly (Place & { readonly rules: string })[] = [
  {
    family: 'inet',
    type: 'filter',
    hook: 'output',
    rules: `
      ct state established,related accept
      ct state == new accept
      ct state != new,related accept
      ct state { new, related } accept
      ct state vmap { new : accept, established : drop }
      tcp flags syn accept
      tcp flags & (fin|syn|rst|ack) == syn accept
      tcp flags & (fin|syn) == fin|syn accept
      tcp flags & (fin|syn) != 0 accept
      tcp flags & syn == 0 accept
      tcp flags != syn accept
      tcp flags == syn accept
      tcp flags {syn, syn|ack} accept
      tcp flags ! syn accept
      tcp flags ! fin,rst accept
      meta mark & 0x4000 == 0 accept
      meta mark & 0x4000 != 0 accept
      meta mark & 0xff00 == 0x100 accept
      meta mark set mark or 0x4000
      meta mark set mark and 0xffff
      meta mark set mark xor 0xff
      meta mark set meta mark & 0xffff00ff | 0x100
      meta mark set ct mark
      ct mark set meta mark
      meta mark != 0 ct mark set mark
      meta l4proto { tcp, udp } th dport 53 accept
      meta l4proto ipv6-icmp icmpv6 type { nd-router-advert, echo-request } accept
      ip protocol icmp icmp type echo-request limit rate 10/second accept
      limit rate over 10 mbytes/second burst 100 kbytes drop
      limit rate 1/minute burst 3 packets log prefix "hi x" level debug flags all
      meta iif lo accept
      iifname "eth*" oifname != "lo" accept
      reject
      reject with icmp port-unreachable
      reject with icmpv6 no-route
      reject with icmpx admin-prohibited
      reject with tcp reset
      numgen random mod 3 vmap { 0 : accept, 1 : drop, 2 : return }
      ip dscp af11 accept
      ip6 dscp set cs1
      ip saddr & 255.0.255.0 == 10.0.3.0 accept
      ip saddr != 10.0.0.0/8 accept
      tcp dport 1024-65535 accept
      tcp dport != { 22, 80-90 } accept
      meta random & 2147483647 < 715827883 accept
      meta skuid 0 accept
      meta skuid { 0, 1000-2000 } accept
      meta hour "17:00"-"19:00" accept
      meta day "Saturday" accept
      meta time < "2030-01-01 00:00:00" accept
      @th,16,16 53 accept
      @nh,8,80 0x1234567890abcdef1234 accept
      tcp option maxseg size set rt mtu
      tcp option maxseg size 1-500 accept
      tcp option sack-perm exists accept
      exthdr frag exists accept
      frag frag-off 1 accept
      ct original ip saddr 1.2.3.4 accept
      ct direction original accept
      ct status dnat,snat accept
      ct expiration 30s accept
      ct bytes > 1000 accept
      ct original packets > 1000 accept
      ct count over 20 drop
      ct helper "ftp" accept
      ct zone 3 accept
      ct zone set 5
      notrack
      vlan id 5 vlan pcp 3 accept
      ether saddr 00:11:22:33:44:55 accept
      ip ttl 1 ip length 20-100 accept
      socket transparent 1 accept
      meta priority set 1:10
      meta priority none accept
      meta pkttype broadcast accept
      meta nftrace set 1
      counter packets 5 bytes 10 comment "c1"
    `,
  },
  {
    family: 'ip',
    type: 'filter',
    hook: 'forward',
    rules: `
      meta mark set ip saddr map { 1.1.1.1 : 1, 1.1.1.2 : 2 }
      meta mark set tcp dport map { 1 : 1, 80-90 : 2 }
      meta mark set numgen inc mod 4 offset 10
      meta priority set ip saddr map { 1.1.1.1 : 1:20 }
      quota over 10 mbytes drop
      quota 100 kbytes used 5 bytes accept
      tcp dport 1 synproxy mss 1460 wscale 7 timestamp sack-perm
      tcp dport 1 synproxy
      meter foo { ip saddr limit rate 10/second burst 7 packets } accept
      dup to 10.0.0.1
      dup to 10.0.0.1 device eth0
      dup to ip saddr map { 1.1.1.1 : 2.2.2.2 } device eth0
      log
      log level emerg
      log prefix "a b" group 2 snaplen 100 queue-threshold 5
      log flags tcp sequence,options flags ip options flags skuid flags ether
      log level audit
      reject
      reject with icmp host-prohibited
      tcp flags syn reset tcp option sack-perm
      tcp flags syn tcp option maxseg size set 1400
      tcp option timestamp tsval > 5
      ip option rr ptr 1
      ip option ra exists
      rt nexthop 1.2.3.4
      rt mtu 1400
      rt classid 10
      ct original saddr 1.2.3.4
      ct original ip saddr 1.2.3.4
      ct reply ip daddr 10.0.0.0/8
      ct original protocol tcp ct original proto-dst 80 accept
      ct l3proto ipv4
      ct original zone 5
      ct avgpkt > 200
      ct mark & 0xff == 0x1
      ct mark set mark and 0xff or 0x100
      ct event set new,destroy
      ct label 1
      ct label set 1
      ct id 12345
      ct zone set ip saddr map { 1.1.1.1 : 1, 2.2.2.2 : 2 }
      meta l4proto . th dport { tcp . 80, udp . 53 } accept
      ip saddr . ip daddr . meta iifname . tcp dport . ct mark { 1.1.1.1 . 2.2.2.2 . "eth0" . 80 . 0x5 } accept
      ip dscp { af11, cs1, 0x3f } accept
      ip dscp set cs0
      ip dscp vmap { af11 : accept, ef : drop }
      ip ecn ce
      ip ecn set ect0
      ip version 4 ip hdrlength 5
      ip frag-off & 0x1fff != 0
      ip id 1-100 ip checksum 5
      ip daddr & 0.0.0.255 < 0.0.0.127
      ip saddr { 10.0.0.0/8, 192.168.0.0-192.168.3.255 }
      icmp type { echo-request, timestamp-reply } icmp code 3
      icmp id 5 icmp sequence 6
      icmp code { net-unreachable, 5 }
      udp length > 100 udp checksum 0
      tcp sequence 1000 tcp ackseq 5 tcp doff 8 tcp window 100 tcp urgptr 0
      sctp dport 5 sctp vtag 5
      sctp chunk data exists
      sctp chunk init init-tag 5
      dccp type { request, response }
      udplite dport 5
      esp spi 100
      ah spi 111-222
      igmp type membership-query igmp mrt 1
      th sport 53
      meta iiftype ether
      meta oiftype loopback
      meta iifgroup default
      meta iifgroup 5
      meta cgroup 5
      meta cpu 3
      meta cpu 1-3
      meta rtclassid 5
      meta length > 1000
      meta protocol ip
      meta iifkind "veth"
      meta sdif "lo"
      meta sdifname "vrf0"
      meta ipsec exists
      rt ipsec exists
      meta random < 1000
      ipsec in reqid 5
      ipsec in spnum 1 ip saddr 1.1.1.1
      osf ttl skip version "Linux:3.0"
      meta skuid "root" meta skgid != 0
      meta pkttype { host, multicast }
      meta day { Monday, "Tuesday" }
      meta hour >= "17:00:10"
      @ih,0,32 0x1234
      @ll,0,48 0x112233445566
      @th,0,64 0xffffffffffffffff
      @nh,0,128 set 5
      ip saddr set 1.1.1.1
      ip ttl set 64
      tcp flags & (syn|ack) != (syn|ack)
      tcp flags { fin, syn|ack, 0x0 }
      tcp flags vmap { syn : accept, fin|ack : drop }
      ct state invalid drop
      ct status & (snat|dnat) == snat
      ct status != expected
      counter accept
      continue
    `,
  },
  {
    family: 'ip',
    type: 'nat',
    hook: 'prerouting',
    rules: `
      dnat to 10.0.0.1
      tcp dport 80 dnat to 10.0.0.1:8080
      tcp dport 80 dnat to 10.0.0.1-10.0.0.5:8080-8090 random,persistent
      tcp dport 81 dnat to :8080
      dnat ip addr . port to ip saddr . tcp dport map { 1.1.1.1 . 80 : 10.0.0.1 . 8080, 1.1.1.2 . 81 : 10.0.0.2 . 8081 }
      tcp dport 1 dnat to numgen inc mod 2 map { 0 : 10.0.0.1, 1 : 10.0.0.2 }
      tcp dport 1 dnat to numgen random mod 3 offset 100 map { 100 : 10.0.0.1, 101-102 : 10.0.0.2 }
      tcp dport 1 dnat to jhash ip saddr mod 2 map { 0 : 10.0.0.1, 1 : 10.0.0.2 } : 90
      tcp dport 1 dnat to symhash mod 2 offset 1 map { 1 : 10.0.0.1, 2 : 10.0.0.2 }
      dnat ip prefix to ip daddr map { 10.141.11.0/24 : 192.168.2.0/24 }
      tcp dport 22 redirect to :2222
      redirect
      tcp dport 22 redirect to :2000-2100 random
    `,
  },
  {
    family: 'ip',
    type: 'nat',
    hook: 'postrouting',
    rules: `
      masquerade
      masquerade fully-random,persistent
      tcp dport 9 masquerade to :1024-2048 random
      snat to 1.2.3.4
      snat to 1.2.3.4-1.2.3.9 persistent
      tcp dport 9 snat to 1.2.3.4:5
      snat to ip saddr map { 10.0.0.1 : 1.1.1.1, 10.0.0.2 : 1.1.1.2 }
    `,
  },
  {
    family: 'ip6',
    type: 'nat',
    hook: 'prerouting',
    rules: `
      dnat to fd00::1
      tcp dport 80 dnat to [fd00::5]:8080
      tcp dport 80 dnat to [fd00::1]-[fd00::9]:8080-8090
      dnat to fd00::1-fd00::9
      tcp dport 81 dnat to :90
      dnat ip6 prefix to ip6 daddr map { fd01::/64 : fd02::/64 }
      tcp dport 1 dnat to numgen random mod 2 map { 0 : fd00::a, 1 : fd00::b }
      meta l4proto tcp dnat ip6 addr . port to numgen random mod 2 map { 0 : fd00::a . 80, 1 : fd00::b . 81 }
    `,
  },
  {
    family: 'ip6',
    type: 'filter',
    hook: 'forward',
    rules: `
      ip6 saddr fd00::/8 ip6 daddr != { fd00::1, fd00:1::/64, fe80::1-fe80::9 } accept
      ip6 saddr ::1 accept
      ip6 daddr ::/0 accept
      ip6 daddr != ::1 meta l4proto . th dport vmap { tcp . 80 : accept }
      icmpv6 type { nd-router-advert, nd-neighbor-solicit, mld-listener-done, packet-too-big } accept
      icmpv6 code port-unreachable
      icmpv6 type packet-too-big icmpv6 mtu 1280
      icmpv6 id 7
      ip6 nexthdr { tcp, ipv6-icmp, udplite } accept
      ip6 flowlabel 0x12345 ip6 hoplimit < 5 ip6 length > 100
      ip6 dscp af41
      ip6 ecn ect1
      frag more-fragments 1
      frag nexthdr tcp
      frag id 1
      hbh nexthdr tcp
      hbh hdrlength 5
      rt type 0
      rt seg-left 5
      rt0 addr[1] fd00::1
      srh tag 5
      srh sid[1] fd00::1
      dst nexthdr udp
      mh type binding-update
      mh type { home-test, careof-test }
      mh nexthdr tcp
      exthdr hbh exists
      exthdr mh missing
      exthdr rt exists
      reject
      reject with icmpv6 admin-prohibited
      reject with icmpv6 5
      reject with tcp reset
      rt nexthop fd00::1
      ct original ip6 saddr fd00::1
      ct original saddr fd00::1
      ct reply ip6 daddr fd00::/64
      ip6 saddr & ffff::ffff == ffff::1
      log level debug prefix "x6 "
      ip6 saddr . tcp dport { fd00::1 . 80, fd00::/64 . 81-90 } accept
      ip6 saddr set fd00::5
    `,
  },
  {
    family: 'inet',
    type: 'filter',
    hook: 'input',
    rules: `
      ct state vmap { established : accept, related : accept, invalid : drop }
      meta nfproto ipv4 accept
      meta nfproto ipv6 tcp dport 22 accept
      meta protocol ip6 accept
      tcp dport { ssh, https, 8000-8999 } accept
      icmp type echo-request accept
      icmpv6 type echo-request accept
      meta l4proto { icmp, ipv6-icmp } accept
      reject with icmpx no-route
      reject with icmpv6 port-unreachable
      meta iifname { "eth0", "wlan*" } accept
      iif { "lo", "eth0" } accept
      iif != "lo" accept
      iifname . oifname { "eth0" . "eth1", "eth1" . "eth0" } accept
      ip saddr . ip daddr vmap { 1.1.1.1 . 2.2.2.2 : accept, 10.0.0.0/8 . 10.0.0.0/8 : continue }
      jhash ip saddr . ip daddr mod 4 seed 0xdeadbeef offset 1 vmap { 1 : accept, 2-4 : drop }
      symhash mod 2 vmap { 0 : accept, 1 : drop }
      numgen inc mod 10 < 3 accept
      numgen random mod 100 10 accept
      meta mark set jhash ip saddr mod 10 offset 100
      meta mark set symhash mod 10
      ct mark set numgen random mod 16
      meta mark set meta mark << 8
      ct mark set ct mark | 0x1
      ct mark set meta mark & 0xffff | 0x10000
      ct mark and 0x1 == 0x1 meta mark set ct mark
      tcp option mptcp exists
      tcp option sack left 5
      tcp option sack0 left 5
      tcp option sack1 right 5
      tcp option timestamp exists
      tcp option fastopen exists
      tcp option md5sig exists
      tcp option window count 5
      ip option rr exists
      ip daddr 224.0.0.0/4 meta pkttype multicast
      ip daddr 255.255.255.255 fib daddr type broadcast
      meta rtclassid 5
      meta iifgroup 1-5
      ct reply ip saddr 10.0.0.0/24
      ct original bytes > 100000
      ct bytes 100-200
      ct packets > 5
      ct direction reply
      ct expiration 1h30m10s
      ct expiration 10s-1m
      ct expiration { 10s, 1m }
      ct status expected,seen-reply,assured,confirmed,snat,dnat,dying
      ct status != snat
      ct status & (seen-reply|assured) == 0
      ct state new,untracked
      ct state != { new, established }
      ct event set new,related,destroy,label
      ct mark set 0x11223344
      ct zone set 1
      ct original zone set 2
      ct mark 1-5
      ct mark { 1, 2-9 }
      ct l3proto ipv6
      ct l3proto { ipv4, ipv6 }
      meta time "2022-07-01 00:00:00"-"2022-07-02 00:00:00"
      meta day { 0, 6 }
      meta day != "Sunday"
      meta day "Monday"-"Friday"
      tcp flags & (syn|fin) == syn|fin drop
      tcp flags & (fin|syn|rst|psh|ack|urg) == 0x0 drop
      tcp flags syn,ack / syn,ack,rst drop
      tcp flags != syn,ack drop
      tcp flags syn|ack accept
      tcp flags ! syn,fin accept
      tcp flags & (syn | ack) != 0 accept
      ip saddr 10.0.0.0-10.0.0.255 accept
      ip saddr 10.0.0.1-10.0.0.9 accept
      ip saddr { 10.0.0.1-10.0.0.9, 11.0.0.0/8 } accept
      quota over 9000000000000000 bytes
      udp dport 1-65535 accept
      th dport { 53, 80-90 }
      th sport . th dport { 53 . 80 }
      @th,0,16 { 53, 80 }
      @th,16,8 & 0xf0 == 0x10
      @ll,0,8 & 1 == 0
      @nh,64,8 0x6
      ip dscp & 0x38 == 0x10
      ip dscp != cs0
      ip ttl { 1, 2, 10-20 }
      vlan id 1-100 vlan type ip
      vlan pcp 2 vlan dei 1
      ether type ip
      ether type 0x88cc
      ether type arp arp operation request
      meta iiftype { ether, loopback, ppp }
      meta mark set ip saddr . tcp dport map { 1.1.1.1 . 80 : 0x1 }
      meta mark set ip saddr map { 10.0.0.0/8 : 0x1, 192.168.1.1-192.168.1.3 : 0x2 }
      meta priority set 0x10020
      meta priority { none, 1:1 }
      ct helper { "ftp", "sip" }
      log prefix "a" flags tcp sequence flags skuid
      log flags ip options
      log group 0 prefix "g"
      limit rate 5/hour burst 10 packets
      limit rate 5/week
      limit rate over 5/day
      limit rate 1024 bytes/second
      limit rate 1025 bytes/second burst 1 kbytes
      limit rate over 1 mbytes/minute burst 10 mbytes
      ct count 5 accept
      meta secmark set ct secmark
      ip daddr != 127.0.0.0/8 drop
      fib daddr type { local, broadcast } accept
      accept comment "x"
    `,
  },
  {
    family: 'inet',
    type: 'nat',
    hook: 'prerouting',
    rules: `
      dnat ip to 1.1.1.1
      dnat ip6 to fd00::1
      tcp dport 80 dnat ip to 1.1.1.1:8080
      tcp dport 80 dnat ip6 to [fd00::1]:8080
      meta l4proto tcp dnat ip addr . port to numgen random mod 2 map { 0 : 10.0.0.1 . 80, 1 : 10.0.0.2 . 81 }
      tcp dport 5 redirect to :tcp dport map { 5 : 6, 7 : 8 }
      udp dport 5 redirect to :1-9 fully-random,persistent
      tcp dport 9 dnat to :numgen inc mod 2 map { 0 : 80, 1 : 81 }
    `,
  },
  {
    family: 'inet',
    type: 'nat',
    hook: 'postrouting',
    rules: `
      masquerade
      oifname "eth0" masquerade random
      snat ip to 1.1.1.1
      snat ip6 to fd00::1-fd00::5 random
      ip protocol tcp ip saddr 10.0.0.0/8 snat ip to 1.1.1.1-1.1.1.5:1000-2000
      snat ip prefix to ip saddr map { 10.0.0.0/24 : 11.0.0.0/24 }
    `,
  },
  {
    family: 'inet',
    type: 'filter',
    hook: 'prerouting',
    rules: `
      tcp dport 5 tproxy ip to 1.1.1.1:50
      tcp dport 5 tproxy ip6 to [fd00::1]:50
      tcp dport 5 tproxy to :50
      tcp dport 5 notrack
    `,
  },
]

export const writtenRules: readonly WrittenRules[] = places.map(({ rules, ...place }) => ({
  ...place,
  rules: rules.split('\n').flatMap((line) => line.trim() || []),
}))
