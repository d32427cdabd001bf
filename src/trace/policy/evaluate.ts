/** One connection between two parties: may it pass, says which rule, and what would change it. */
import type { PolicyAnswer } from './answer'
import type { PartyConnection } from './party'
import type { PolicyWorld } from './policy-world'

export declare function evaluate(world: PolicyWorld, connection: PartyConnection): PolicyAnswer
