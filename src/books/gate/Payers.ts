/** Finds a call's possible payers: the credential's tenant (`layerOwnOnly`), or also teams (`Pooling.layerPayers`). */
import { Context, Effect, Layer } from "effect"
import type { Caller } from "../../kernel/Caller.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import type { Source } from "../ledger/rules/Transaction.ts"

export const ownOf = (tenant_id: TenantId): Source => ({
  billing_account_id: billingAccountOf(tenant_id),
  tenant_id,
  kind: "own",
  why: "own"
})

/**
 * Returns a call's sources in the order that the gate tries them. This function runs before every call, so implementations should cache their
 * results. They should return the same object for equal results, because the writer caches by identity.
 */
export class Payers extends Context.Tag("tollgate/gate/Payers")<
  Payers,
  (caller: Caller) => Effect.Effect<ReadonlyArray<Source>>
>() {
  /** Makes the credential's tenant the only payer. */
  static readonly layerOwnOnly = Layer.sync(Payers, () => {
    const known = new WeakMap<Caller, Effect.Effect<ReadonlyArray<Source>>>()
    return (caller: Caller) => {
      let own = known.get(caller)
      if (own === undefined) known.set(caller, (own = Effect.succeed([ownOf(caller.tenant_id)])))
      return own
    }
  })
}
