/** Probabilities of kube-proxy's balancing rules, in both spellings: as it writes them, and as the kernel keeps them. */

/** 1/n with ten decimals, as Go prints it. */
export function printShare(n: number): string {
  /** The one n whose eleventh decimal is an exact half: Go rounds it to even, `toFixed` would round it up. */
  return n === 2048 ? '0.0004882812' : (1 / n).toFixed(10)
}

const scale = 2 ** 31

/** The kernel keeps 31 bits of a probability, and iptables prints eleven decimals of them (libxt_statistic.c, 1.8.9). */
export function saveProbability(text: string): string {
  const kept = Math.floor(Number(text) * scale + 0.5)
  if (!Number.isFinite(kept)) return text
  /** An odd part of 2¹² has a half behind the eleventh decimal: C rounds it to even, `toFixed` would round it up. */
  const parts = kept / 2 ** 19
  if (!Number.isInteger(parts) || parts % 2 === 0) return (kept / scale).toFixed(11)
  const below = Math.floor((parts * 5 ** 11) / 2)
  return ((below + (below % 2)) / 1e11).toFixed(11)
}
