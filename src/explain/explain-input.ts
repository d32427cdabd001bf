/** What `explain` is given: the cluster, one Service, the rules of nodes, and a connection tracking table. */
import type { Finding } from '#base/finding'
import type { Family } from '#base/ip'
import type { SliceMode } from '#compile/endpointslices/select-slices'
import type { RulesetParse } from '#compile/iptables/parse-save'
import type { ProxySettings } from '#compile/services/proxy-settings'
import type { Cluster } from '#model/cluster'
import type { Service } from '#model/service'
import type { RulesetTraceInput } from '#trace/trace-ruleset'
import type { ConntrackTable } from './parse-conntrack'

/** The rules of one node as they were read. */
export type NodeRuleset = {
  /** Absent when nobody said whose rules they are. */
  readonly node?: string
  /** The files they were read from. */
  readonly files: readonly string[]
  readonly rulesets: RulesetTraceInput['rulesets']
  readonly nft?: NonNullable<RulesetTraceInput['nft']>
  readonly sets: NonNullable<RulesetTraceInput['sets']>
  readonly signs: RulesetParse['signs']
  /** Part of the rules is missing from what was read: that nothing takes a packet shows nothing then. */
  readonly isIncomplete?: boolean
}

export type ExplainInput = {
  readonly cluster: Cluster
  readonly service: Service
  /** What was found while reading; those about the Service, its pods and slices are repeated in their layer. */
  readonly findings: readonly Finding[]
  /** Left out: the slices of the input where it has any of the Service, else those that its pods imply. */
  readonly slices?: SliceMode
  /** Left out: those of the Service. */
  readonly families?: readonly Family[]
  readonly settings: Partial<ProxySettings>
  /** Left out: every node. */
  readonly node?: string
  /** Left out: the zone of the Corefile, else the usual one. */
  readonly clusterDomain?: string
  readonly nodeRulesets: readonly NodeRuleset[]
  readonly conntrack?: ConntrackTable
}
