import { HttpApiBuilder } from "@effect/platform"
import { Clock, Effect, Option } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { storable } from "../../http/lanes/Answer.ts"
import { envelope } from "../../kernel/Envelope.ts"
import { Allowances } from "../../money/allowances/Allowances.ts"
import type { NewAllowance, PlanLine } from "../../money/allowances/Allowance.ts"
import { TenantPlans } from "../../money/allowances/TenantPlans.ts"
import { Plans } from "../../money/allowances/Settings.ts"
import type { PlansByName } from "../../money/allowances/Settings.ts"
import { Vouchers } from "../../money/vouchers/Vouchers.ts"
import * as Audit from "../operator/Audit.ts"
import { CurrentOperator } from "../operator/CurrentOperator.ts"
import { keyset } from "../operator/Keyset.ts"
import { TenantNotFound } from "../operator/Problems.ts"
import { OperatorCreditApi } from "./Api.ts"

const answered = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.map(storable(effect), (result) => envelope(result))

/** Creates the statement that adds the current operator's action to the audit log. The statement commits with that action. */
const audited = (act: Audit.Act) =>
  Effect.zipWith(CurrentOperator, Clock.currentTimeMillis, (operator, now) => [Audit.entry(operator, act, now)])

/** Converts an allowance's terms to the details of an audit log entry. */
export const detailsOf = ({ amount_usd, period, plan, rollover }: NewAllowance): NonNullable<Audit.Act["details"]> => ({
  plan,
  amount_usd,
  period,
  ...(typeof rollover === "object" ? { rollover_up_to_usd: rollover.up_to_usd } : { rollover })
})

const linesOf = (plans: PlansByName): ReadonlyArray<PlanLine> =>
  Object.entries(plans)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, { allowance, price_factor }]) => ({
      name,
      allowance: allowance ?? null,
      price_factor: price_factor?.text ?? null
    }))

export const OperatorCreditHttp = HttpApiBuilder.group(
  contract.add(OperatorCreditApi),
  "operatorCredit",
  Effect.fnUntraced(function* (handlers) {
    const allowances = yield* Allowances
    const vouchers = yield* Vouchers
    const plans = yield* Plans
    // Makes this node apply the price factor of a tenant's new plan immediately.
    const { refresh } = yield* TenantPlans
    return handlers
      .handle("allowances", ({ urlParams: { after = "", limit, tenant_id } }) =>
        answered(
          Effect.map(
            tenant_id === undefined
              ? allowances.list(after, limit + 1)
              : Effect.map(Effect.option(allowances.find(tenant_id)), Option.toArray),
            (found) => keyset(found, limit, (one) => one.tenant_id)
          )
        )
      )
      .handle("allowance", ({ path }) => answered(allowances.find(path.tenant_id)))
      .handle("setAllowance", ({ path: { tenant_id }, payload }) =>
        answered(
          audited({ action: "allowance.set", tenant_id, details: detailsOf(payload) }).pipe(
            Effect.flatMap((beside) => allowances.set(tenant_id, payload, beside)),
            Effect.tap(() => refresh),
            Effect.catchTag("BillingAccountNotFound", () => new TenantNotFound({ tenant_id }))
          )
        )
      )
      .handle("endAllowance", ({ path: { tenant_id }, urlParams: { take_back = false } }) =>
        answered(
          Effect.flatMap(audited({ action: "allowance.end", tenant_id, details: { take_back } }), (beside) =>
            Effect.tap(allowances.end(tenant_id, take_back, beside), () => refresh)
          )
        )
      )
      .handle("plans", () => answered(Effect.succeed({ plans: linesOf(plans) })))
      .handle("vouchers", ({ urlParams: { before, limit } }) =>
        answered(Effect.map(vouchers.list(before, limit + 1), (found) => keyset(found, limit, ({ id }) => id)))
      )
      .handle("createVouchers", ({ payload }) => {
        const { amount_usd, count, uses } = payload
        return answered(
          Effect.flatMap(audited({ action: "voucher.create", details: { amount_usd, count, uses } }), (beside) =>
            Effect.map(vouchers.create(payload, beside), (made) => ({ vouchers: made }))
          )
        )
      })
      .handle("endVoucher", ({ path: { voucher_id } }) =>
        answered(
          Effect.flatMap(audited({ action: "voucher.end", subject: voucher_id }), (beside) =>
            vouchers.end(voucher_id, beside)
          )
        )
      )
  })
)
