/** The amounts of credit that a new account is given, in nano-USD. */
import { Context } from "effect"
import type { Nano } from "../kernel/Money.ts"

export interface PriceListFacts {
  /** Credited to a new home tenant as `signup_grant`. */
  readonly default_new_credits: Nano
  /** Credited to a new home tenant as `registration_bonus`. */
  readonly default_registration_credits: Nano
}

export class PriceList extends Context.Reference<PriceList>()("tollgate/prices/PriceList", {
  defaultValue: (): PriceListFacts => ({ default_new_credits: 0n, default_registration_credits: 0n })
}) {}
