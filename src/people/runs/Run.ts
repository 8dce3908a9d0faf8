/**
 * Runs of an API key. A run has its own key and budget, for example for one execution of an agent. Its parent is an API key or another run.
 *
 * Where the specification is silent:
 * - An unknown field is 400, so that a mistyped one does not make a run wider than was meant.
 * - A run limits at least one unit. A unit that it does not limit has the limits of its ancestors.
 * - The limits of a run are compared with those of its ancestors when it is made: with the spending limit of the API key, of any period, and with
 *   the limits of each run above it. A budget of the tenant counts its calls, but does not bound its limits.
 * - `expires_in` beyond the end of the parent is cut to that end.
 * - A run without `models` may call those of its parent. A run has the tags of its parent; another value for one of them is 400.
 * - A later change of the API key's tags holds for the calls of its runs as well. If a call then has too many tags, those of the key stay.
 * - A tenant has up to 10,000 open runs; one more is 409 `too_many_runs`. Runs are listed for 30 days after the end of their API key's run,
 *   or for an hour if none of them made a call.
 * - An API key sees the runs that descend from it, the key of a run sees this run and those below it, and a person sees those of their own keys in
 *   the tenant of their token. All three may end what they see.
 * - Calls of a run are calls of its API key: records, sums and limits of the key include them. Jobs, stored answers and idempotency keys belong to
 *   the API key, so its runs share them.
 * - The sums by model have the calls of the run and of all runs below it, each under the model that served it. A refused call is not among them.
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
    message: () => `an amount of 0 to ${toDecimal(amountMax)} USD`
  })
)
const Count = Schema.Int.pipe(Schema.between(0, countMax)).annotations({
  message: () => ({ message: `a whole number of 0 to ${countMax}`, override: true })
})

const unitsOf = <U, C>(usd: U, count: C) => ({ usd, tokens: count, requests: count, concurrent: count })

const limitUnits = unitsOf(Schema.optional(Credit), Schema.optional(Count))

const NewLimit = Schema.Struct(limitUnits)
  .pipe(
    Schema.filter((limit) => Object.values(limit).some((value) => value !== undefined), {
      message: () => "at least one of usd, tokens, requests and concurrent"
    })
  )
  .annotations({ identifier: "NewRunLimit", description: "The run's limit; `concurrent` counts open calls" })

const Name = StoredText.pipe(
  Schema.filter((name) => name.length <= 100, { message: () => "a text of up to 100 characters" })
)

const Models = Schema.Array(Schema.String).pipe(
  Schema.filter((models) => models.length > 0 && models.length <= 200, { message: () => "a list of 1 to 200 models" })
)

export const NewRun = Schema.Struct({
  name: Schema.optionalWith(Name, { default: () => "" }),
  limit: NewLimit,
  expires_in: Schema.optionalWith(
    Schema.Int.pipe(Schema.between(1, secondsMax)).annotations({
      message: () => ({ message: `a whole number of seconds from 1 to ${secondsMax}`, override: true }),
      description: `Seconds until the run expires: ${secondsDefault}, at most ${secondsMax}, and never after its parent`
    }),
    { default: () => secondsDefault }
  ),
  models: Schema.optional(
    Models.annotations({
      description:
        "The models that the run may call, named as in usage records; its parent must be allowed to call them"
    })
  ),
  tags: Schema.optional(
    KeyTags.annotations({
      description: "Tags of the run's calls, in addition to its parent's tags; a call cannot replace them"
    })
  )
}).annotations({ identifier: "NewRun", parseOptions: { onExcessProperty: "error" } })
export interface NewRun extends Schema.Schema.Type<typeof NewRun> {}

const fields = {
  id: RunId,
  name: Schema.String,
  /** The API key at the top of the tree. */
  application_id: ApplicationId,
  /** The parent run. Null if the parent is the API key. */
  parent: Schema.NullOr(RunId),
  /** 1 for a run directly below the API key. */
  level: Schema.Int,
  /** The first characters of the key, for recognition. */
  key_prefix: Schema.String,
  limit: Schema.Struct(unitsOf(Schema.optional(Usd), Schema.optional(Schema.Int))),
  /** The usage of the run and all runs below it. */
  spent: Schema.Struct({ usd: Usd, tokens: Schema.Int, requests: Schema.Int }),
  /** Reservations of open calls. */
  reserved: Schema.Struct({ usd: Usd, tokens: Schema.Int }),
  open_calls: Schema.Int,
  /** Absent if it may call all models of its API key. */
  models: Schema.optional(Schema.Array(Schema.String)),
  tags: Schema.Record({ key: Schema.String, value: Schema.String }),
  created_at: Moment,
  expires_at: Moment,
  /** Null while the run's key is accepted. */
  ended_at: Schema.NullOr(Moment)
} as const

export const Run = Schema.Struct(fields).annotations({ identifier: "Run" })
export interface Run extends Schema.Schema.Type<typeof Run> {}

export const RunWithKey = Schema.Struct({ ...fields, api_key: Schema.String }).annotations({ identifier: "RunWithKey" })
export interface RunWithKey extends Schema.Schema.Type<typeof RunWithKey> {}

/** Sums over the calls of a run and the runs below it, for one model. */
export const RunModel = Schema.Struct({
  model: Schema.String,
  requests: Schema.Int,
  cost_usd: Usd,
  prompt_tokens: Schema.Int,
  completion_tokens: Schema.Int
}).annotations({ identifier: "RunModel" })

/** The maximum number of children in a run's details. The list with `parent` has all of them. */
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
  parent: Schema.optional(RunId.annotations({ description: "Only the direct children of this run" }))
})
