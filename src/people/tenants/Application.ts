/**
 * Applications: what holds an API key. The key itself is shown once, when it is made; what is kept is its keyed hash.
 *
 * Where the specification is silent:
 * - A key may have a spending limit, of a calendar month (UTC) or, unless it says so, of all time. What it spent before counts. It may be set
 *   below what is spent: calls are refused then. Whoever may change the application may change its limits, but those that an owner, an admin
 *   or the operator has set on another person's key: that person can make them stricter only. A limit of all time is stricter than the
 *   same limit of a month.
 * - A key may have an end (`expires_at`), and a list of models. A change of either holds at once in this process, and within
 *   `KeyCallers.cacheLifetime` in others.
 * - A key that an OAuth client made by a token ends with the sign-in that the token follows from, as soon as that is ended; it is no
 *   longer listed then. A sign-in that runs out by its age ends no key.
 * - Fields of limits are shown of applications that have them.
 */
import { Schema } from "effect"
import { AccountId, ApplicationId } from "../../kernel/Ids.ts"
import { Moment } from "../../kernel/Moment.ts"
import { amountMax, toDecimal, Usd } from "../../kernel/Money.ts"
import { Paginated } from "../../kernel/Page.ts"
import { StoredText } from "../../kernel/StoredText.ts"

const Name = StoredText.pipe(
  Schema.filter((name) => name.trim() !== "" && name.length <= 100, { message: () => "a text of 1 to 100 characters" })
)
const Description = StoredText.pipe(Schema.maxLength(1_000, { message: () => "a text of up to 1000 characters" }))

const Limit = Usd.pipe(
  Schema.filter((amount) => amount >= 0n && amount <= amountMax, {
    message: () => `an amount of 0 to ${toDecimal(amountMax)} USD`
  })
)
const Period = Schema.Literal("month", "total")

const modelsMax = 200
const AllowedModels = Schema.Array(Schema.String).pipe(
  Schema.filter((models) => models.length > 0 && models.length <= modelsMax && models.every(isModelName), {
    message: () => `a list of 1 to ${modelsMax} models, or null for all`
  })
)
const isModelName = (name: string): boolean => name !== "" && name.length <= 200

/** What may be limited. `null` takes a limit away. */
const limits = {
  spending_limit_usd: Schema.optional(Schema.NullOr(Limit)),
  spending_limit_period: Schema.optional(Period),
  expires_at: Schema.optional(Schema.NullOr(Moment)),
  allowed_models: Schema.optional(Schema.NullOr(AllowedModels))
} as const

export const NewApplication = Schema.Struct({
  name: Name,
  description: Schema.optionalWith(Description, { default: () => "" }),
  ...limits
}).annotations({ identifier: "NewApplication" })
export interface NewApplication extends Schema.Schema.Type<typeof NewApplication> {}

export const ApplicationChange = Schema.Struct({
  name: Schema.optional(Name),
  description: Schema.optional(Description),
  ...limits
}).annotations({ identifier: "ApplicationChange" })
export interface ApplicationChange extends Schema.Schema.Type<typeof ApplicationChange> {}

const fields = {
  id: ApplicationId,
  name: Schema.String,
  description: Schema.String,
  /** Who made it. */
  account_id: AccountId,
  key_hash: Schema.String,
  /** The first characters of the key, for telling keys apart. */
  key_prefix: Schema.String,
  last_used_at: Schema.NullOr(Moment),
  created_at: Moment,
  updated_at: Moment,
  /** The OAuth client that made it with the person's token; absent where the person made it. */
  created_by: Schema.optional(Schema.Struct({ client_id: Schema.String, name: Schema.String })),
  spending_limit_usd: Schema.optional(Usd),
  /** Whether the limit is of each calendar month (UTC), or of all time. */
  spending_limit_period: Schema.optional(Period),
  /** Of the limit: what the key was charged in the period so far, and what its open calls have set aside. */
  spent_usd: Schema.optional(Usd),
  reserved_usd: Schema.optional(Usd),
  /** From then on the key is refused. */
  expires_at: Schema.optional(Moment),
  /** The models that the key may call, by the names that usage records have. */
  allowed_models: Schema.optional(Schema.Array(Schema.String))
} as const

export const Application = Schema.Struct(fields).annotations({ identifier: "Application" })
export interface Application extends Schema.Schema.Type<typeof Application> {}

export const ApplicationWithKey = Schema.Struct({ ...fields, api_key: Schema.String }).annotations({
  identifier: "ApplicationWithKey"
})
export interface ApplicationWithKey extends Schema.Schema.Type<typeof ApplicationWithKey> {}

export const ApplicationPage = Paginated(Application).annotations({ identifier: "ApplicationPage" })
