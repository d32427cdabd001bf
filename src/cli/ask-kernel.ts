/** The kernel as a decider beside our own, where the machine lets it be asked. */
import { Failure } from '#base/failure'
import type { CompiledPolicy } from '#compile/traffic-policy/compile-policy'
import type { Decider } from '#compile/traffic-policy/explain-packet'
import type { Io } from './io'

export type OpenDeciders = { readonly deciders: readonly Decider[]; readonly close: () => void }

const none: OpenDeciders = { deciders: [], close: () => {} }

/** Only root may load programs; where the kernel refuses for another reason, the two others answer alone. */
export async function openKernelDecider({ mayAskKernel = false }: Io, compiled: CompiledPolicy): Promise<OpenDeciders> {
  if (!mayAskKernel || process.platform !== 'linux' || process.geteuid?.() !== 0) return none
  try {
    // The native module is loaded by those alone who use it.
    const { openPolicyDecider } = await import('#kernel/policy-decider')
    const kernel = openPolicyDecider(compiled)
    return { deciders: [{ name: 'kernel', decide: kernel.decide }], close: kernel.close }
  } catch (error) {
    if (error instanceof Failure) return none
    throw error
  }
}
