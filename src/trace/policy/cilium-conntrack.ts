/** Which packets of a connection Cilium asks policy about, by what connection tracking says of them; bpf_lxc.c, Cilium 1.16 to 1.19. */

export type CiliumTracking = 'NEW' | 'ESTABLISHED' | 'REPLY' | 'RELATED'

/** Established ones are asked anew each time, so that a change of policy cuts them; replies never are. */
export function asksPolicy(tracking: CiliumTracking): boolean {
  return tracking === 'NEW' || tracking === 'ESTABLISHED'
}
