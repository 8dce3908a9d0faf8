/** What the operator may do to tenants and people: what is asked, and what it comes to. */
import { ParseResult, Schema } from "effect"
import { Decimal } from "../../kernel/Decimal.ts"
import { AccountId, ApplicationId, TenantId } from "../../kernel/Ids.ts"
import { amountMax, fromDecimal, toDecimal, toJson, Usd } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { StoredText } from "../../kernel/StoredText.ts"
import { PersonStatus, TenantStatus } from "./Found.ts"

const amountRule = `a decimal number above 0 and up to ${toDecimal(amountMax)}, with at most 9 places`

/** Credit to book: what would be rounded away, or is more than the books hold, is not meant. */
const Amount: Schema.Schema<Nano, number | Decimal> = Schema.transformOrFail(
  Schema.Union(Schema.JsonNumber, Schema.instanceOf(Decimal)).annotations({
    message: () => ({ message: amountRule, override: true })
  }),
  Schema.BigIntFromSelf,
  {
    strict: true,
    decode: (number, _, ast) => {
      const text = String(number)
      const amount = fromDecimal(text, 9)
      const isExact = amount !== undefined && fromDecimal(text, 18) === amount * 1_000_000_000n
      return isExact && amount > 0n && amount <= amountMax
        ? ParseResult.succeed(amount)
        : ParseResult.fail(new ParseResult.Type(ast, number, amountRule))
    },
    encode: (amount) => ParseResult.succeed(toJson(amount))
  }
).annotations({ jsonSchema: { type: "number", description: amountRule } })

const lineRule = "1 to 200 characters on one line"

/** A text for the ledger, the audit log or people. */
export const Line = StoredText.pipe(
  Schema.filter(
    (text) => text.trim() === text && text !== "" && text.length <= 200 && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text),
    {
      message: () => lineRule,
      jsonSchema: { type: "string", minLength: 1, maxLength: 200, description: lineRule }
    }
  )
)

export const Reason = Schema.Struct({ reason: Schema.optional(Line) }).annotations({ identifier: "OperatorReason" })
export interface Reason extends Schema.Schema.Type<typeof Reason> {}

/** Credit for a tenant. `reference` makes it once: the same again does nothing. */
export const NewCredit = Schema.Struct({
  amount: Amount,
  reference: Line,
  /** What the tenant's ledger says of it. */
  description: Schema.optional(Line),
  /** For the audit log. */
  reason: Schema.optional(Line)
}).annotations({ identifier: "OperatorCredit" })
export interface NewCredit extends Schema.Schema.Type<typeof NewCredit> {}

/** `done` is false where the same reference was booked before: nothing has happened now. */
export const Credited = Schema.Struct({
  tenant_id: TenantId,
  amount: Usd,
  reference: Schema.String,
  balance: Usd,
  done: Schema.Boolean
}).annotations({ identifier: "OperatorCredited" })
export interface Credited extends Schema.Schema.Type<typeof Credited> {}

/** `changed` is false where it was so before. */
export const TenantChanged = Schema.Struct({
  tenant_id: TenantId,
  status: TenantStatus,
  changed: Schema.Boolean
}).annotations({ identifier: "OperatorTenantChanged" })
export interface TenantChanged extends Schema.Schema.Type<typeof TenantChanged> {}

export const PersonChanged = Schema.Struct({
  account_id: AccountId,
  status: PersonStatus,
  changed: Schema.Boolean
}).annotations({ identifier: "OperatorPersonChanged" })
export interface PersonChanged extends Schema.Schema.Type<typeof PersonChanged> {}

export const KeyRevoked = Schema.Struct({ id: ApplicationId, revoked: Schema.Boolean }).annotations({
  identifier: "OperatorKeyRevoked"
})
export interface KeyRevoked extends Schema.Schema.Type<typeof KeyRevoked> {}

export const SignInsEnded = Schema.Struct({ account_id: AccountId, ended: Schema.Int }).annotations({
  identifier: "OperatorSignInsEnded"
})
export interface SignInsEnded extends Schema.Schema.Type<typeof SignInsEnded> {}
