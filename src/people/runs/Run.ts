/**
 * Runs of an API key. A run has its own key and budget, for example for a single execution of an agent. Its parent is an API key or another run.
 *
 * Where the specification is silent:
 * - An unknown field is rejected with 400, so that a mistyped field does not make a run broader than intended.
 * - A run limits at least one unit. For any unit that it does not limit, its ancestors' limits apply.
 * - When a run is created, its limits are compared with those of its ancestors: the API key's spending limit, regardless of its period, and the
 *   limits of each run above it. A tenant's budget counts the run's calls but does not bound its limits.
 * - If the parent expires before `expires_in` is over, the run expires with its parent.
 * - A run without `models` may call its parent's models. A run inherits its parent's tags; a different value for one of them is rejected with 400.
 * - If the API key's tags change later, the change also applies to the calls of its runs. If a call would have too many tags, the key's tags take
 *   precedence.
 * - A tenant may have 10,000 open runs; a further run is rejected with 409 `too_many_runs`. Runs are listed for 30 days after the run directly below
 *   their API key ends, or for an hour if none of them made a call.
 * - An API key sees the runs that descend from it. A run's key sees that run and all runs below it. A user sees the runs of their own keys in the
 *   tenant of their token. Owners and admins of a tenant see the runs of all its keys. A caller that sees a run may also end it.
 * - A run's calls are its API key's calls, so the key's records, sums and limits include them. Jobs, stored responses and idempotency keys belong to
 *   the API key, so its runs share them.
 * - The sums by model cover the calls of the run and of all runs below it, each under the model that served it. The sums do not include refused
 *   calls.
 */
import { Schema } from "effect"
import { ApplicationId, RunId } from "../../kernel/Ids.ts"
import { KeyTags } from "../../kernel/Labels.ts"
import { Moment } from "../../kernel/Moment.ts"
import { amountMax, toDecimal, Usd } from "../../kernel/Money.ts"
import { PageQuery, Paginated } from "../../kernel/Page.ts"
import { StoredText } from "../../kernel/StoredText.ts"

/** The maximum number of levels below an API key. */
export const levelsMax = 8
export const openMax = 10_000
const secondsMax = 30 * 86_400
const secondsDefault = 3_600
const countMax = 1_000_000_000_000

const Credit = Usd.pipe(
  Schema.filter((amount) => amount >= 0n && amount <= amountMax, {
    message: () => `must be an amount from 0 to ${toDecimal(amountMax)} USD`
  })
)
const Count = Schema.Int.pipe(Schema.between(0, countMax)).annotations({
  message: () => ({ message: `must be a whole number from 0 to ${countMax}`, override: true })
})

const unitsOf = <U, C>(usd: U, count: C) => ({ usd, tokens: count, requests: count, concurrent: count })

const limitUnits = unitsOf(Schema.optional(Credit), Schema.optional(Count))

const NewLimit = Schema.Struct(limitUnits)
  .pipe(
    Schema.filter((limit) => Object.values(limit).some((value) => value !== undefined), {
      message: () => "must contain at least one of usd, tokens, requests and concurrent"
    })
  )
  .annotations({ identifier: "NewRunLimit", description: "The run's limit; `concurrent` counts open calls" })

const Name = StoredText.pipe(
  Schema.filter((name) => name.length <= 100, { message: () => "must be a string of up to 100 characters" })
)

const Models = Schema.Array(Schema.String).pipe(
  Schema.filter((models) => models.length > 0 && models.length <= 200, {
    message: () => "must be an array of 1 to 200 models"
  })
)

export const NewRun = Schema.Struct({
  name: Schema.optionalWith(Name, { default: () => "" }),
  limit: NewLimit,
  expires_in: Schema.optionalWith(
    Schema.Int.pipe(Schema.between(1, secondsMax)).annotations({
      message: () => ({ message: `must be a whole number of seconds from 1 to ${secondsMax}`, override: true }),
      description: `Seconds until the run expires. ${secondsDefault} by default, at most ${secondsMax}, and never later than the parent`
    }),
    { default: () => secondsDefault }
  ),
  models: Schema.optional(
    Models.annotations({
      description:
        "The models that the run may call, as named in usage records; the parent must be allowed to call them"
    })
  ),
  tags: Schema.optional(
    KeyTags.annotations({
      description: "Tags for the run's calls, in addition to its parent's tags; a call cannot replace them"
    })
  )
}).annotations({ identifier: "NewRun", parseOptions: { onExcessProperty: "error" } })
export interface NewRun extends Schema.Schema.Type<typeof NewRun> {}

const fields = {
  id: RunId,
  name: Schema.String,
  /** The API key at the top of the tree. */
  application_id: ApplicationId,
  /** The parent run; null if the parent is the API key. */
  parent: Schema.NullOr(RunId),
  /** The level in the tree; 1 for a run directly below the API key. */
  level: Schema.Int,
  /** The first characters of the key, so that users can recognize it. */
  key_prefix: Schema.String,
  limit: Schema.Struct(unitsOf(Schema.optional(Usd), Schema.optional(Schema.Int))),
  /** The usage of the run and all runs below it. */
  spent: Schema.Struct({ usd: Usd, tokens: Schema.Int, requests: Schema.Int }),
  reserved: Schema.Struct({ usd: Usd, tokens: Schema.Int }),
  open_calls: Schema.Int,
  /** Absent if the run may call all of its API key's models. */
  models: Schema.optional(Schema.Array(Schema.String)),
  tags: Schema.Record({ key: Schema.String, value: Schema.String }),
  created_at: Moment,
  expires_at: Moment,
  /** When the run ended; null while the run's key is accepted. */
  ended_at: Schema.NullOr(Moment)
} as const

export const Run = Schema.Struct(fields).annotations({ identifier: "Run" })
export interface Run extends Schema.Schema.Type<typeof Run> {}

export const RunWithKey = Schema.Struct({ ...fields, api_key: Schema.String }).annotations({ identifier: "RunWithKey" })
export interface RunWithKey extends Schema.Schema.Type<typeof RunWithKey> {}

/** One model's sums over the calls of a run and its descendants. */
export const RunModel = Schema.Struct({
  model: Schema.String,
  requests: Schema.Int,
  cost_usd: Usd,
  prompt_tokens: Schema.Int,
  completion_tokens: Schema.Int
}).annotations({ identifier: "RunModel" })

/** The maximum number of children in a run's details. The list with `parent` contains all of them. */
export const childrenMax = 100

export const RunDetails = Schema.Struct({
  ...fields,
  /** Models by descending cost. */
  by_model: Schema.Array(RunModel),
  /** The newest direct children. */
  children: Schema.Array(Run)
}).annotations({ identifier: "RunDetails" })
export interface RunDetails extends Schema.Schema.Type<typeof RunDetails> {}

export const RunPage = Paginated(Run).annotations({ identifier: "RunPage" })

export const RunQuery = Schema.Struct({
  ...PageQuery,
  parent: Schema.optional(RunId.annotations({ description: "Return only the direct children of this run" }))
})
