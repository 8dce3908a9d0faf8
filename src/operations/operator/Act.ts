/** Schemas for requests and responses of the operator's actions. */
import { Schema } from "effect"
import { Amount } from "../../kernel/Amount.ts"
import { AccountId, ApplicationId, TenantId } from "../../kernel/Ids.ts"
import { Usd } from "../../kernel/Money.ts"
import { StoredText } from "../../kernel/StoredText.ts"
import { PasskeyId } from "../../people/passkeys/Passkey.ts"
import { PersonStatus, TenantStatus } from "./Found.ts"

const lineRule = "must be 1 to 200 characters on one line"

/** One line of text for the ledger, the audit log or people to read. */
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

/** An amount to grant, to take back, or to record as purchased. A repeated request with the same `reference` books nothing. */
export const NewCredit = Schema.Struct({
  amount: Amount,
  reference: Line,
  /** The description in the tenant's ledger. */
  description: Schema.optional(Line),
  /** The reason in the audit log. */
  reason: Schema.optional(Line)
}).annotations({ identifier: "OperatorCredit" })
export interface NewCredit extends Schema.Schema.Type<typeof NewCredit> {}

/** `done` is false if an earlier request already booked the reference. */
export const Credited = Schema.Struct({
  tenant_id: TenantId,
  amount: Usd,
  reference: Schema.String,
  balance: Usd,
  done: Schema.Boolean
}).annotations({ identifier: "OperatorCredited" })
export interface Credited extends Schema.Schema.Type<typeof Credited> {}

/** `taken` is the granted credit that was taken back because it was neither spent nor reserved. */
export const TakenBack = Schema.Struct({ ...Credited.fields, taken: Usd }).annotations({
  identifier: "OperatorTakenBack"
})
export interface TakenBack extends Schema.Schema.Type<typeof TakenBack> {}

/** `changed` is false if the tenant already had this status. */
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

export interface EndingOfSignIns extends Reason {
  readonly passkeys?: boolean | undefined
}

export const PasskeyDeleted = Schema.Struct({ id: PasskeyId, deleted: Schema.Boolean }).annotations({
  identifier: "OperatorPasskeyDeleted"
})
export interface PasskeyDeleted extends Schema.Schema.Type<typeof PasskeyDeleted> {}

export const KeyRevoked = Schema.Struct({ id: ApplicationId, revoked: Schema.Boolean }).annotations({
  identifier: "OperatorKeyRevoked"
})
export interface KeyRevoked extends Schema.Schema.Type<typeof KeyRevoked> {}

/** `passkeys_left` is the number of passkeys that can still sign the person in. */
export const SignInsEnded = Schema.Struct({
  account_id: AccountId,
  ended: Schema.Int,
  passkeys_deleted: Schema.Int,
  passkeys_left: Schema.Int
}).annotations({
  identifier: "OperatorSignInsEnded"
})
export interface SignInsEnded extends Schema.Schema.Type<typeof SignInsEnded> {}
