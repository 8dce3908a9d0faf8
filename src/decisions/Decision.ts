/** A decision: typed questions about a state, what may be asked, and what it costs. */
import { Context, Either, Schema } from "effect"
import { notJson, parse } from "../http/Json.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import { usd } from "../kernel/Money.ts"
import type { Nano } from "../kernel/Money.ts"
import type { UnitPrice } from "../kernel/Price.ts"
import { isObject } from "../upstream/Failures.ts"
import { DecisionBodyUnreadable } from "./Problems.ts"

/** The decision model of the deployment; `undefined` where it has none. */
export interface DecisionModel {
  /** The name of the upstream in the configuration. */
  readonly upstream: string
  /** Below the upstream's address: `/v1/systemone`. */
  readonly path: string
  /** What the upstream calls the model that is served. */
  readonly model: string
  /** What callers may call it; a request without a model takes the first. */
  readonly spellings: ReadonlyArray<string>
  /** USD an input token. Output tokens cost nothing. */
  readonly input_price: UnitPrice
}

export class ConfiguredDecisionModel extends Context.Reference<ConfiguredDecisionModel>()(
  "tollgate/decisions/ConfiguredDecisionModel",
  { defaultValue: (): DecisionModel | undefined => undefined }
) {}

/** What is set aside for every call, whatever it asks. */
export const reservation: Nano = (usd * 30n) / 100n

export const bodyBytesMax = 1024 * 1024

/** The documented shape. What a question may hold is the model's own to say, so that its newer types pass. */
export const DecisionRequest = Schema.Struct({
  /** The full context: a text, or any JSON but null. */
  state: Schema.Unknown,
  /** By the ids under which the answers are wanted. */
  questions: Schema.Record({
    key: Schema.String,
    value: Schema.Struct({
      type: Schema.String,
      instructions: Schema.optional(Schema.Unknown),
      /** By label: what it stands for. Required for `choice`. */
      criteria: Schema.optional(Schema.Unknown)
    })
  }),
  model: Schema.optional(Schema.String)
}).annotations({ identifier: "DecisionRequest" })

export const DecisionAnswer = Schema.Struct({
  answers: Schema.Record({ key: Schema.String, value: Schema.Unknown }),
  id: Schema.String,
  model: Schema.String,
  provider: Schema.String,
  usage: Schema.Struct({ input_tokens: Schema.Int, output_tokens: Schema.Int, cost: Schema.Number })
}).annotations({ identifier: "DecisionAnswer" })

/** The body for the upstream: as it came, with the model that is served. */
export const read = (
  bytes: Buffer,
  { model, spellings }: DecisionModel
): Either.Either<string, InvalidRequest | DecisionBodyUnreadable> => {
  const parsed = parse(bytes)
  if (Either.isLeft(parsed)) return parsed.left === notJson ? unreadable : Either.left(parsed.left)
  const body = parsed.right
  if (!isObject(body)) return unreadable
  const asked = body.model ?? spellings[0]
  if (typeof asked !== "string") return wrong("model", "a text")
  if (asked !== model && !spellings.includes(asked)) return wrong("model", `one of ${spellings.join(", ")}`)
  if (body.state === undefined || body.state === null) return wrong("state", "required: the full context")
  if (!isObject(body.questions)) return wrong("questions", "required: an object, keyed by the ids of the answers")
  return Either.right(JSON.stringify({ ...body, model }))
}

const unreadable = Either.left(new DecisionBodyUnreadable({ field: "", rule: "a JSON document, which is an object" }))

const wrong = (field: string, rule: string) => Either.left(InvalidRequest.of(field, rule))
