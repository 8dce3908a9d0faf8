/** Gives credit and allowances to provisioned people and tenants. */
import { Clock, Effect } from "effect"
import * as Ids from "../../kernel/Ids.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { TenantId } from "../../kernel/Ids.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { Terms } from "../../money/allowances/Allowance.ts"
import * as Audit from "../operator/Audit.ts"
import type { Operator } from "../operator/Operator.ts"
import { BalanceBeyondBooks } from "../operator/Problems.ts"
import type { Kind } from "./Externals.ts"
import type { Parts } from "./Provisioning.ts"

const description = "granted by the operator"

/** Gives credit once per external id. The same transaction records that the id has received credit. */
export const creditOnce = ({ externals, ledger }: Pick<Parts, "externals" | "ledger">) =>
  Effect.fn("Provisioning.creditOnce")(function* (
    by: Operator,
    kind: Kind,
    external_id: string,
    tenant_id: TenantId,
    amount: Nano | undefined
  ) {
    if (amount === undefined) return
    const found = yield* externals.find(kind, external_id)
    if (found === undefined || found.credited_at !== null) return
    const now = yield* Clock.currentTimeMillis
    const reference = Ids.at("pay", now)
    const details = { amount_usd: amount, reference, external_id, description }
    yield* ledger
      .credit({ account: billingAccountOf(tenant_id), amount, source: "admin", reference, description }, [
        externals.credited(kind, external_id, now),
        Audit.entry(by, { action: "grant", tenant_id, details }, now)
      ])
      .pipe(
        Effect.catchTags({
          AccountMissing: Effect.die,
          BalanceTooLarge: () => new BalanceBeyondBooks(),
          // A concurrent request gave the credit.
          Conflict: () => Effect.void
        })
      )
  })

const isSame = (one: Terms["rollover"], other: Terms["rollover"]): boolean =>
  typeof one === "object" && typeof other === "object" ? one.up_to_usd === other.up_to_usd : one === other

/** Sets an allowance unless the tenant already has these terms. */
export const allow = ({ allowances }: Pick<Parts, "allowances">) =>
  Effect.fn("Provisioning.allow")(function* (by: Operator, tenant_id: TenantId, terms: Terms | undefined) {
    if (terms === undefined) return
    const found = yield* Effect.option(allowances.find(tenant_id))
    if (
      found._tag === "Some" &&
      found.value.plan === null &&
      found.value.amount_usd === terms.amount_usd &&
      found.value.period === terms.period &&
      isSame(found.value.rollover, terms.rollover)
    )
      return
    const now = yield* Clock.currentTimeMillis
    const { amount_usd, period } = terms
    yield* allowances
      .set(tenant_id, terms, [
        Audit.entry(by, { action: "allowance.set", tenant_id, details: { amount_usd, period } }, now)
      ])
      .pipe(Effect.catchTags({ BillingAccountNotFound: Effect.die, AllowancePlanUnknown: Effect.die }))
  })
