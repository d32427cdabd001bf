/** What `trace --all` shows, and what it counts because there is no one destination to show. */
import { expect, test } from 'vitest'
import { parseSave } from '#compile/iptables/parse-save'
import { parseNftList } from '#compile/nftables/parse-list'
import { summarizeHidden } from './survey-entry'
import { type Survey, surveyRules } from './survey-services'

const nat = (rules: string): string =>
  `*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n:A - [0:0]\n${rules}\nCOMMIT\n`
const filter = (rules: string): string =>
  `*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n${rules}\nCOMMIT\n`

function survey(text: string): Survey {
  return surveyRules({ rulesets: parseSave(text, 'x').rulesets })
}
const shown = ({ rows }: Survey): readonly (readonly string[])[] => rows.map((row) => [row.name, row.destination])

test.each([
  ['-A PREROUTING -d 192.0.2.9/32 -j DNAT --to-destination 10.0.0.1', 'no port'],
  ['-A PREROUTING -d 192.0.2.0/24 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.0.0.1', 'a range of addresses'],
  ['-A PREROUTING ! -d 192.0.2.9/32 -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 8', 'all addresses but some'],
  ['-A PREROUTING -p tcp -m tcp --dport 8000:8010 -j REDIRECT --to-ports 8', 'a range of ports'],
  ['-A PREROUTING -p tcp -m tcp ! --dport 80 -j REDIRECT --to-ports 8', 'all ports but some'],
])('%s is counted, for it asks for %s', (rule, why) => {
  const found = survey(nat(rule))
  expect(found.rows).toEqual([])
  expect(found.hidden).toEqual([{ why, line: 7 }])
  expect(summarizeHidden(found.hidden)).toBe(`1 rule not shown: 1 for ${why} (line 7)`)
})

test('a rule without an address is for any, unless its chain or itself is for the node', () => {
  const redirect = '-p tcp -m tcp --dport 25 -j REDIRECT --to-ports 8'
  expect(shown(survey(nat(`-A PREROUTING ${redirect}`)))).toEqual([['(PREROUTING)', 'any:25']])
  const local = '-A PREROUTING -m addrtype --dst-type LOCAL -j A'
  expect(shown(survey(nat(`${local}\n-A A ${redirect}`)))).toEqual([['(A)', 'this node:25']])
  expect(shown(survey(nat(`${local}\n-A OUTPUT -j A\n-A A ${redirect}`)))).toEqual([['(A)', 'any:25']])
  expect(shown(survey(filter('-A INPUT -p tcp -m tcp --dport 25 -j DROP')))).toEqual([['(INPUT)', 'this node:25']])
})

test('what refuses for some sources alone is no rule that translates nothing', () => {
  const [row] = survey(filter('-A INPUT -s 192.0.2.7/32 -p tcp -m tcp --dport 22 -j DROP')).rows
  expect(row?.anomalies).toEqual([])
  expect(row?.trace.branches?.map((branch) => branch.verdict.kind)).toContain('dropped')
})

test('rules behind a Service chain that is shown are not told again', () => {
  const text = nat(
    '-A PREROUTING -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j A\n-A A -p tcp -j DNAT --to-destination 10.0.0.1:80',
  )
  const found = survey(text)
  expect(shown(found)).toEqual([['(PREROUTING)', '10.96.0.1:80']])
  expect(found.hidden).toEqual([])
  expect(found.findings.map((finding) => finding.code)).toEqual(['trace.missing-table'])
})

test('maps of kube-proxy and rules of other nft tables are destinations', () => {
  const { ruleset } = parseNftList(
    `table ip kube-proxy {
	map service-ips {
		type ipv4_addr . inet_proto . inet_service : verdict
		elements = { 10.96.0.20 . tcp . 80 : goto service-KHN6ECMT-shop/web/tcp/http }
	}
	map no-endpoint-nodeports {
		type inet_proto . inet_service : verdict
		elements = { tcp . 30080 comment "shop/void:http" : drop }
	}
	chain nat-prerouting {
		type nat hook prerouting priority dstnat; policy accept;
		ip daddr . meta l4proto . th dport vmap @service-ips
	}
	chain filter-input {
		type filter hook input priority filter; policy accept;
		meta l4proto . th dport vmap @no-endpoint-nodeports
	}
	chain service-KHN6ECMT-shop/web/tcp/http {
		dnat to 10.244.1.5:8080
	}
}
table inet own {
	chain pre {
		type nat hook prerouting priority 0; policy accept;
		ip daddr 192.0.2.9 tcp dport 8080 dnat ip to 10.0.0.1:80
		ip daddr 192.0.2.0/24 tcp dport 8081 redirect
		tcp dport 25 drop
	}
}
`,
    'x',
  )
  const found = surveyRules({ rulesets: [], nft: ruleset })
  expect(found.rows.map((row) => [row.name, row.destination, row.trace.targets.map(({ address }) => address)])).toEqual(
    [
      ['(pre)', '192.0.2.9:8080', ['10.0.0.1:80']],
      ['(pre)', 'any:25', []],
      ['shop/void:http', 'this node:30080', []],
      ['shop/web:http', '10.96.0.20:80', ['10.244.1.5:8080']],
    ],
  )
  expect(found.hidden).toEqual([{ why: 'a range of addresses', line: 26 }])
})
