/** A charge laid open: what was counted, at which price, what was set aside, who paid and why they did. */
import { Schema } from "effect"
import { Moment } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"

export const Explanation = Schema.Struct({
  usage_id: Schema.String,
  timestamp: Moment,
  endpoint: Schema.String,
  model: Schema.String,
  provider: Schema.String,
  success: Schema.Boolean,
  error_type: Schema.NullOr(Schema.String),
  /** Where the figures come from: `provider`, `counted`, `estimated`, or `none` where there were none. */
  usage_source: Schema.String,
  price: Schema.NullOr(
    Schema.Struct({
      /** The same price has the same version. */
      version: Schema.String,
      lines: Schema.Array(
        Schema.Struct({
          quantity: Schema.Number,
          unit: Schema.String,
          /** Where the price is one for longer prompts: for those with more tokens. */
          above_prompt_tokens: Schema.optionalWith(Schema.Int, { exact: true }),
          /** Exact decimals of USD. */
          unit_price_usd: Schema.String,
          amount_usd: Schema.String
        })
      )
    })
  ),
  /** The lines together, rounded half-up once to nano-USD. */
  computed_usd: Usd,
  /** What had been set aside before the call reached anybody. */
  reserved_usd: Usd,
  charged_usd: Usd,
  uncollected_usd: Usd,
  payer: Schema.Struct({
    billing_account_id: Schema.String,
    tenant_id: Schema.String,
    kind: Schema.Literal("own", "team"),
    why: Schema.NullOr(Schema.Literal("own", "pinned", "team_first", "fall_through")),
    because: Schema.String
  }),
  /** The whole in a sentence or two. */
  summary: Schema.String
}).annotations({ identifier: "Explanation" })
export interface Explanation extends Schema.Schema.Type<typeof Explanation> {}

/** Why the payer stood first, in words. */
export const because: Record<"own" | "pinned" | "team_first" | "fall_through", string> = {
  own: "the caller's own account is charged first",
  pinned: "the caller pinned this billing source",
  team_first: "the token came from the OAuth code exchange, which charges the team pool first",
  fall_through: "the sources before it did not have enough available credit"
}
