/** What one way of reading policies must tell the evaluator; Kubernetes' own is `k8s-semantics.ts`. */
import type { Ip } from '#base/ip'
import type { Prefix } from '#base/prefix'
import type {
  CompiledPolicy,
  Direction,
  Match,
  PeerMatch,
  PolicyProtocol,
  PolicyRule,
  PortMatch,
  SubjectMatch,
} from '#compile/policy/policy-rule'
import type { Cluster } from '#model/cluster'
import type { NamedPort } from '#model/pod'
import type { Decision, PolicyReason } from './answer'
import type { Nearness, Party, PartyClass } from './party'

/** A rule of a policy that holds for the subject, and whose peers match the peer. */
export type MatchedRule = {
  readonly policy: CompiledPolicy
  readonly rule: PolicyRule
  /** Those that match, surely ones before others; empty for a rule that holds for any peer. */
  readonly peers: readonly PeerMatch[]
  readonly isCertain: boolean
}

/** One direction between two classes: everything about it but protocol and port. */
export type Lane = {
  readonly direction: Direction
  readonly subject: PartyClass
  readonly peer: PartyClass
  readonly nearness: Nearness
  /** Those that hold for the subject in this direction, in the order that the semantics gave them. */
  readonly policies: readonly CompiledPolicy[]
  /** In the order of policies and of rules in them. */
  readonly matched: readonly MatchedRule[]
  /** What names of ports stand for in it. */
  readonly portNames: readonly NamedPort[]
}

/** A matched rule whose ports match as well, and which of them do; `ports` is empty for a rule of any port. */
export type RuleAtPort = MatchedRule & { readonly ports: readonly PortMatch[] }

export type LanePoint = {
  readonly protocol: PolicyProtocol
  readonly port: number
  /** Absent when it is not known. */
  readonly icmpCode?: number
  /** A fragment without ports, of a datagram whose first fragment was not seen. */
  readonly isLostFragment?: boolean
  /** It stands for the ports of a stretch that are decided alike, and reasons name none of them. */
  readonly isStretch?: boolean
}

/** The decision with its reasons, as far as it is the semantics' own. */
export type Judgement = {
  readonly decision: Decision
  readonly because: readonly [PolicyReason, ...PolicyReason[]]
  /** Those among the rules at the port that decide. */
  readonly deciding: ReadonlySet<PolicyRule>
  readonly tiers: string
  readonly changes: readonly string[]
}

export type Semantics = {
  readonly name: 'k8s' | 'cilium'
  /** Every policy that counts, in the order in which it is met. */
  readonly compile: (cluster: Cluster) => readonly CompiledPolicy[]
  /** What tells parties apart beside namespace, labels and named ports: the class of two parties with one key is one. */
  readonly distinguish: (party: Party, ip: Ip | undefined) => string
  /** Whether ranges of addresses can match pods and nodes, so that classes must tell them apart by address. */
  readonly seesAddressOf: (kind: PartyClass['kind']) => boolean
  readonly matchSubject: (subject: SubjectMatch, of: PartyClass) => boolean
  /** Asked once for each class. */
  readonly matchPeer: (peer: PeerMatch, of: PartyClass) => Match
  /** Every range of addresses that a match may ask for: addresses are cut by them. */
  readonly rangesOf: (policies: readonly CompiledPolicy[]) => readonly Prefix[]
  /**
   * What `decide` reads of a lane beside policies, rules, their open peers, nearness and the target's named ports: lanes
   * that agree in all decide alike. Absent when it reads nothing else.
   */
  readonly laneText?: (lane: Lane) => string
  /** What names of ports stand for; the target's own without it, or where it is undefined. */
  readonly portNames?: (direction: Direction, target: PartyClass) => readonly NamedPort[] | undefined
  /** Why a name stands for no port of that lane. */
  readonly explainName?: (name: string, direction: Direction) => string | undefined
  /** Ports that it treats apart from what rules say of them. */
  readonly ownPorts?: (protocol: PolicyProtocol) => readonly number[]
  /** The decision alone; `rules` are those of the lane that match the port as well. Must agree with `judge`. */
  readonly decide: (lane: Lane, rules: readonly RuleAtPort[], at: LanePoint) => Decision
  readonly judge: (lane: Lane, rules: readonly RuleAtPort[], at: LanePoint) => Judgement
  /** Why a policy does not hold for a subject. */
  readonly explainSubject: (policy: CompiledPolicy, of: PartyClass) => string
  /** Why a peer of a rule does not match. */
  readonly explainPeer: (peer: PeerMatch, of: PartyClass) => string
  readonly notes: (source: PartyClass, target: PartyClass, at: LanePoint) => readonly string[]
}
