/** The explanation of a charge: its units, price and reservation, the paying account, and the reason why it paid. */
import { Schema } from "effect"
import { Moment } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"
import { labels } from "./Usage.ts"

export const Explanation = Schema.Struct({
  usage_id: Schema.String,
  timestamp: Moment,
  endpoint: Schema.String,
  model: Schema.String,
  provider: Schema.String,
  ...labels,
  success: Schema.Boolean,
  error_type: Schema.NullOr(Schema.String),
  /** The origin of the figures: `provider`, `counted`, `estimated`, or `none`. */
  usage_source: Schema.String,
  price: Schema.NullOr(
    Schema.Struct({
      /** Identical prices have the same version. */
      version: Schema.String,
      /** The factors that the unit prices below include, as exact decimals. Absent at list price. */
      factors: Schema.optionalWith(Schema.Array(Schema.String), { exact: true }),
      lines: Schema.Array(
        Schema.Struct({
          quantity: Schema.Number,
          unit: Schema.String,
          /** Present if the price applies only to prompts with more tokens than this. */
          above_prompt_tokens: Schema.optionalWith(Schema.Int, { exact: true }),
          /** An exact decimal in USD. */
          unit_price_usd: Schema.String,
          amount_usd: Schema.String
        })
      )
    })
  ),
  /** The sum of the lines, rounded half-up once to nano-USD. */
  computed_usd: Usd,
  /** The amount reserved before the request to the provider. */
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
  /** The explanation, in a sentence or two. */
  summary: Schema.String
}).annotations({ identifier: "Explanation" })
export interface Explanation extends Schema.Schema.Type<typeof Explanation> {}

/** The wording of each reason for choosing a payer. */
export const because: Record<"own" | "pinned" | "team_first" | "fall_through", string> = {
  own: "the caller's own account is charged first",
  pinned: "the caller pinned this billing source",
  team_first: "tokens from the OAuth code exchange charge the team pool first",
  fall_through: "the preceding sources did not have enough available credit"
}
