/** A decision request (typed questions about a state), its validation and its price. */
import { Either, Schema } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { usd } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { isObject } from "../../upstream/wire/Failures.ts"
import { UnknownModel } from "../../upstream/models/Provider.ts"
import type { DecisionModel } from "./Settings.ts"

/** The amount that every call reserves, in nano-USD. */
export const reservation: Nano = (usd * 30n) / 100n

/** The documented part of a request. The model, not the service, validates the questions, so newer question types are accepted. */
export const DecisionRequest = Schema.Struct({
  /** The full context: a string or any other JSON value except null. */
  state: Schema.Unknown,
  /** The questions, keyed by id. The answers use the same ids. */
  questions: Schema.Record({
    key: Schema.String,
    value: Schema.Struct({
      type: Schema.String,
      instructions: Schema.optional(Schema.Unknown),
      /** The meaning of each label, keyed by label. Required for `choice`. */
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

/** A request. `Decisions.decide` checks `state`, `model`, and that `questions` is an object. All other members are sent to the model unchanged. */
export interface DecisionRequest extends Schema.Schema.Type<typeof DecisionRequest> {
  readonly [member: string]: unknown
}

/** Validates the request and returns the upstream's JSON, with the upstream's name for the model. `Left` contains the first violation. */
export const bodyFor = (
  request: DecisionRequest,
  { model, spellings }: DecisionModel
): Either.Either<string, InvalidRequest> => {
  const name: unknown = request.model ?? spellings[0]
  if (typeof name !== "string") return wrong("model", "must be a string")
  if (name !== model && !spellings.includes(name)) return Either.left(new UnknownModel(name, spellings))
  if (request.state === undefined || request.state === null) return wrong("state", "must contain the full context")
  if (!isObject(request.questions)) return wrong("questions", "must be an object, keyed by the ids of the answers")
  return Either.right(JSON.stringify({ ...request, model }))
}

const wrong = (field: string, rule: string) => Either.left(InvalidRequest.of(field, rule))
