/**
 * Applications and their API keys. The service shows a key once, when its application is created. The database stores a keyed hash of the key.
 *
 * Where the specification is silent:
 * - A key may have a spending limit, either in total or per calendar month (UTC). Charges made before the limit was set also count, and a limit below
 *   these charges blocks further calls. A total limit is stricter than the same limit per month.
 * - If an owner, an admin or the operator set limits on a user's key, the user can only tighten them.
 * - A limit binds one key, not its member. The member may delete the key (for example after a leak), create another, or call with the token of their
 *   own sign-in. `member_spend_enabled` decides whether a tenant pays for its members at all.
 * - A key may have an expiry (`expires_at`) and a list of models. A change takes effect immediately in this process, and within
 *   `KeyCallers.cacheLifetime` in others.
 * - A list of models contains names from usage records. A name that is not in the configuration is rejected with 400, unless the key's list already
 *   contains it.
 * - Ending an OAuth client's sign-in invalidates the keys that the client created, and lists omit them. If a sign-in merely expires, its keys remain
 *   valid.
 * - A key may have up to 8 tags. They mark all its calls, and a request cannot replace them. A user cannot remove tags that an owner, an admin or the
 *   operator set on their key.
 * - The record of an application without limits contains no limit fields.
 */
import { Schema } from "effect"
import { AccountId, ApplicationId } from "../../kernel/Ids.ts"
import { KeyTags } from "../../kernel/Labels.ts"
import { Moment } from "../../kernel/Moment.ts"
import { amountMax, toDecimal, Usd } from "../../kernel/Money.ts"
import { Paginated } from "../../kernel/Page.ts"
import { StoredText } from "../../kernel/StoredText.ts"

const Name = StoredText.pipe(
  Schema.filter((name) => name.trim() !== "" && name.length <= 100, { message: () => "1 to 100 characters" })
)
const Description = StoredText.pipe(
  Schema.maxLength(1_000, { message: () => "must be a string of up to 1000 characters" })
)

const Limit = Usd.pipe(
  Schema.filter((amount) => amount >= 0n && amount <= amountMax, {
    message: () => `must be an amount from 0 to ${toDecimal(amountMax)} USD`
  })
)
const Period = Schema.Literal("month", "total")

const modelsMax = 200
const AllowedModels = Schema.Array(Schema.String).pipe(
  Schema.filter((models) => models.length > 0 && models.length <= modelsMax && models.every(isModelName), {
    message: () => `must be an array of 1 to ${modelsMax} models, or null for all`
  })
)
const isModelName = (name: string): boolean => name !== "" && name.length <= 200

/** `null` removes a limit. */
const limits = {
  spending_limit_usd: Schema.optional(Schema.NullOr(Limit)),
  spending_limit_period: Schema.optional(Period),
  expires_at: Schema.optional(Schema.NullOr(Moment)),
  allowed_models: Schema.optional(Schema.NullOr(AllowedModels)),
  tags: Schema.optional(Schema.NullOr(KeyTags))
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
  account_id: AccountId,
  key_hash: Schema.String,
  /** The first characters of the key, so that users can recognize it. */
  key_prefix: Schema.String,
  last_used_at: Schema.NullOr(Moment),
  created_at: Moment,
  updated_at: Moment,
  /** The OAuth client that created the application with the user's token. Absent if the user created the application. */
  created_by: Schema.optional(Schema.Struct({ client_id: Schema.String, name: Schema.String })),
  spending_limit_usd: Schema.optional(Usd),
  /** With `month`, the limit applies to each calendar month (UTC). */
  spending_limit_period: Schema.optional(Period),
  /** The key's charges in this period, and its open calls' reservations. */
  spent_usd: Schema.optional(Usd),
  reserved_usd: Schema.optional(Usd),
  expires_at: Schema.optional(Moment),
  /** The models that the key may call, as named in usage records. */
  allowed_models: Schema.optional(Schema.Array(Schema.String)),
  /** Tags for all of the key's calls. A request cannot replace them. */
  tags: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.String }))
} as const

export const Application = Schema.Struct(fields).annotations({ identifier: "Application" })
export interface Application extends Schema.Schema.Type<typeof Application> {}

export const ApplicationWithKey = Schema.Struct({ ...fields, api_key: Schema.String }).annotations({
  identifier: "ApplicationWithKey"
})
export interface ApplicationWithKey extends Schema.Schema.Type<typeof ApplicationWithKey> {}

export const ApplicationPage = Paginated(Application).annotations({ identifier: "ApplicationPage" })
