/** What both sides of the datapath's comparison agree on. */

/** Rule n asks for this port and n. */
export const firstPort = 1000
