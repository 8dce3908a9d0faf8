/**
 * Who may pay a call, in the order of charging. By itself the gate knows only the billing account of the credential's tenant;
 * `pooling/` puts teams before or behind it.
 */
import { Context, Effect } from "effect"
import type { Caller } from "../kernel/Caller.ts"
import { billingAccountOf } from "../kernel/Ids.ts"
import type { TenantId } from "../kernel/Ids.ts"
import type { Source } from "../ledger/Transaction.ts"

/** The billing account of the credential's tenant. */
export const ownOf = (tenant_id: TenantId): Source => ({
  billing_account_id: billingAccountOf(tenant_id),
  tenant_id,
  kind: "own",
  why: "own"
})

/**
 * Asked before every call, so an answer that is known costs nothing. The same answer should be the same object: the writer knows
 * it by that.
 */
export class Payers extends Context.Reference<Payers>()("tollgate/gate/Payers", {
  defaultValue: (): ((caller: Caller) => Effect.Effect<ReadonlyArray<Source>>) => {
    const known = new WeakMap<Caller, Effect.Effect<ReadonlyArray<Source>>>()
    return (caller) => {
      let own = known.get(caller)
      if (own === undefined) known.set(caller, (own = Effect.succeed([ownOf(caller.tenant_id)])))
      return own
    }
  }
}) {}
