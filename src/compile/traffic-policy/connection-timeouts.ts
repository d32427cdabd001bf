/** How long a connection is remembered after its last packet: nf_conntrack's defaults, by what both ends were seen to send. */

/** What was seen; the opener is the end whose first packet a rule allowed. */
export const seenBits = {
  /** The opener's SYN. */
  opened: 1,
  /** The other end's SYN with ACK, or any answer where there are no flags. */
  answered: 2,
  /** The opener's ACK after that; or the connection was older than its row. */
  established: 4,
  openerFinished: 8,
  otherFinished: 16,
  /** The other end's ACK after the opener's FIN. */
  openerFinishAcknowledged: 32,
  otherFinishAcknowledged: 64,
  /** A RST, an ABORT or a SHUTDOWN COMPLETE. */
  reset: 128,
} as const

/** A connection met in its middle counts as established. */
export const metInTheMiddle = seenBits.opened | seenBits.answered | seenBits.established

export const timeoutSeconds = {
  tcp: {
    synSent: 120,
    synReceived: 60,
    established: 432_000,
    finWait: 120,
    closeWait: 60,
    lastAck: 30,
    timeWait: 120,
    closed: 10,
  },
  udp: { unanswered: 30, answered: 120 },
  sctp: { unanswered: 30, answered: 210, closed: 10 },
  icmp: 30,
  fragments: 30,
} as const
