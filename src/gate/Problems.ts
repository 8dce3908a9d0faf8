/** What the gate refuses with. */
import { Schema } from "effect"
import { Usd } from "../kernel/Money.ts"
import { Problem } from "../kernel/Problem.ts"
import { BooksUnavailable } from "../ledger/Problems.ts"

/** Why nobody can pay: nobody has that much, the billing account is not active, or the tenant keeps its members from spending. */
const Reason = Schema.Literal("balance", "account_not_active", "members_may_not_spend")

const fields = {
  /** What the payer with the most has left; 0 where no account may pay. */
  available: Schema.BigIntFromSelf,
  /** The least that the call needs; 0 where that was not known yet, since the request had not been read. */
  required: Schema.BigIntFromSelf,
  /** The billing account that would have paid first. */
  payer: Schema.String,
  reason: Reason
} as const

const reasonTexts: Readonly<Record<typeof Reason.Type, string | undefined>> = {
  balance: undefined,
  account_not_active: "the billing account is not active",
  members_may_not_spend: "this tenant does not let its members spend"
}

/** What the body says of it: there is nothing that a smaller call could do for an account that is not active. */
const Details = Schema.Struct({
  available_usd: Schema.optional(Usd),
  required_usd: Schema.optional(Usd),
  reason: Schema.optional(Schema.String)
})

export class InsufficientCredits extends Problem<InsufficientCredits>()("InsufficientCredits", {
  status: 402,
  error: "insufficient credits",
  code: "insufficient_credits",
  fields,
  details: Schema.transform(Details, Schema.typeSchema(Schema.Struct(fields)), {
    strict: true,
    decode: ({ available_usd = 0n, reason, required_usd = 0n }) => ({
      available: available_usd,
      required: required_usd,
      payer: "",
      reason:
        reason === reasonTexts.account_not_active
          ? ("account_not_active" as const)
          : reason === reasonTexts.members_may_not_spend
            ? ("members_may_not_spend" as const)
            : ("balance" as const)
    }),
    encode: ({ available, reason, required }) => ({
      ...(reason !== "account_not_active" && { available_usd: available }),
      ...(reason !== "account_not_active" && required > 0n && { required_usd: required }),
      ...(reasonTexts[reason] !== undefined && { reason: reasonTexts[reason] })
    })
  })
}) {}

/** Every refusal of the gate: the caller cannot pay, or the books cannot be written. */
export const GateRefusal = Schema.Union(InsufficientCredits, BooksUnavailable)
