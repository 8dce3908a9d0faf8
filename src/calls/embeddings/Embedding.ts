/**
 * Validates a request for embeddings and bounds its tokens.
 *
 * Where the specification is silent:
 * - A text counts as one token per byte, and an array of tokens by its length. `max_added_tokens` are added to each input, and an input counts as at
 *   most `max_input_tokens`. The sum is reserved. Upstreams may add tokens, so a reported count is accepted up to `max_input_tokens` for each input.
 * - Fields that change the vendor's bill (`calls/prompts/Extras`) are rejected. All other fields are sent unchanged.
 * - `GET /v1/models` omits embedding models, because clients choose chat models from that list. `GET /v1/embeddings/models` lists them.
 */
import { Either, Schema } from "effect"
import { billed, lookalike } from "../prompts/Extras.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { LongMembers } from "../../kernel/JsonOutline.ts"
import { isObject } from "../../upstream/wire/Failures.ts"
import { UnknownModel } from "../../upstream/models/Provider.ts"
import { tokensEstimated } from "../../upstream/models/Reported.ts"
import { refusalOf } from "../threads/Task.ts"
import type { Refusal } from "../threads/Task.ts"
import type { EmbeddingModel } from "./Settings.ts"

export const EmbeddingRequest = Schema.Struct({
  model: Schema.String,
  /** One text, several texts, one token array, or several token arrays. */
  input: Schema.Union(
    Schema.String,
    Schema.Array(Schema.String),
    Schema.Array(Schema.Int),
    Schema.Array(Schema.Array(Schema.Int))
  ),
  /** `float` is the default. `base64` encodes the numbers as 32-bit floats, in little-endian order. */
  encoding_format: Schema.optional(Schema.NullOr(Schema.Literal("float", "base64"))),
  /** The number of dimensions to return, if the model can shorten its embeddings. */
  dimensions: Schema.optional(Schema.NullOr(Schema.Int)),
  user: Schema.optional(Schema.NullOr(Schema.String))
}).annotations({ identifier: "EmbeddingRequest" })
export interface EmbeddingRequest extends Schema.Schema.Type<typeof EmbeddingRequest> {
  readonly [field: string]: unknown
}

export const EmbeddingAnswer = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(
    Schema.Struct({
      object: Schema.Literal("embedding"),
      index: Schema.Int,
      embedding: Schema.Union(Schema.Array(Schema.Number), Schema.String)
    })
  ),
  model: Schema.String,
  usage: Schema.Struct({ prompt_tokens: Schema.Int, total_tokens: Schema.Int })
}).annotations({ identifier: "EmbeddingAnswer" })

/** A valid request with its model. */
export interface ValidRequest {
  readonly model: EmbeddingModel
  readonly request: EmbeddingRequest
  /** The number of embeddings to return. */
  readonly inputs: number
  /** The tokens to reserve. */
  readonly most: number
  /** The maximum token count to accept from the upstream. */
  readonly context: number
  /** The tokens to charge if the upstream does not report any. */
  readonly estimate: number
}

type Refused = Either.Either<never, InvalidRequest>
const refused = (field: string, rule: string): Refused => Either.left(InvalidRequest.of(field, rule))

/** Facts derived from a request's long members. */
export interface EmbeddingFacts {
  /** The inputs, or `undefined` if there are none. */
  readonly inputs: Inputs | undefined
  /** The error for a field that changes the vendor's bill, if there is one. */
  readonly billed: Refusal | undefined
}

export const factsOf = (request: unknown): EmbeddingFacts =>
  isObject(request)
    ? { inputs: inputsOf(request.input), billed: billedFieldError(request) }
    : { inputs: undefined, billed: undefined }

/**
 * Validates a request and computes its bounds. `Left` holds the first violation. With `facts`, the request's long members may have placeholder values
 * of the same types.
 */
export const validate = (
  models: ReadonlyArray<EmbeddingModel>,
  request: unknown,
  facts = factsOf(request)
): Either.Either<ValidRequest, InvalidRequest> => {
  if (!isObject(request)) return refused("", "must be a JSON object")
  const { dimensions, encoding_format, model: name, user } = request
  if (typeof name !== "string" || name === "") return refused("model", "must be a model's id")
  const model = models.find(({ id }) => id === name)
  if (model === undefined)
    return Either.left(
      new UnknownModel(
        name,
        models.map(({ id }) => id)
      )
    )
  if (!isAbsent(encoding_format) && encoding_format !== "float" && encoding_format !== "base64") {
    return refused("encoding_format", "must be one of float, base64")
  }
  const wrong = isAbsent(dimensions) ? undefined : dimensionsRule(model, dimensions)
  if (wrong !== undefined) return refused("dimensions", wrong)
  if (!isAbsent(user) && typeof user !== "string") return refused("user", "must be a string")
  if (facts.billed !== undefined) return Either.left(new InvalidRequest(facts.billed))
  return Either.map(sizeOf(model, facts.inputs), (size) => ({
    model,
    request: request as unknown as EmbeddingRequest,
    ...size
  }))
}

const isAbsent = (value: unknown): value is undefined | null => value === undefined || value === null

const dimensionsRule = ({ dimensions, shortens }: EmbeddingModel, asked: unknown): string | undefined => {
  if (asked === dimensions) return undefined
  if (!shortens) return `must be omitted, because this model's number of dimensions is ${dimensions ?? "fixed"}`
  const isCount = typeof asked === "number" && Number.isInteger(asked) && asked >= 1
  return isCount && asked <= (dimensions ?? Number.POSITIVE_INFINITY)
    ? undefined
    : `must be a whole number ${dimensions === undefined ? "of at least 1" : `from 1 to ${dimensions}`}`
}

/** Returns an error if a field changes the vendor's bill or differs only in case from a field that the service reads or bills. */
export const billedFieldError = (request: Readonly<Record<string, unknown>>): Refusal | undefined => {
  for (const field in request) {
    const rule = billed.get(field)
    if (rule === undefined) {
      const other = lookalike(billed, field)
      if (other !== undefined) return refusalOf(other)
    } else if (rule.asksFor(request[field]).length > 0) {
      return refusalOf(InvalidRequest.of(field, `this model does not support it: ${rule.why}`))
    }
  }
  return undefined
}

// ---- the input ------------------------------------------------------------------------------------------------------------------

type Size = Pick<ValidRequest, "inputs" | "most" | "context" | "estimate">

const rule = "must be a non-empty string, or a non-empty array of strings, tokens or token arrays"
const wrong = refused("input", rule)

/** A request's inputs. */
export interface Inputs {
  readonly unit: "bytes" | "tokens"
  readonly count: number
  /** The inputs' lengths, up to the first invalid one. */
  readonly lengths: Uint32Array
}

const inputsOf = (input: unknown): Inputs | undefined => {
  const list = typeof input === "string" ? [input] : input
  if (!Array.isArray(list) || list.length === 0) return undefined
  // An array of tokens is a single input.
  const inputs: ReadonlyArray<unknown> = typeof list[0] === "number" ? [list] : list
  const unit = typeof inputs[0] === "string" ? "bytes" : "tokens"
  const lengths = new Uint32Array(inputs.length)
  let valid = 0
  for (const one of inputs) {
    const length = unit === "bytes" ? bytesIn(one) : tokensIn(one)
    if (length === 0) break
    lengths[valid++] = length
  }
  return { unit, count: inputs.length, lengths: lengths.subarray(0, valid) }
}

/** Returns a text's length in bytes, or 0 for an invalid one. */
const bytesIn = (text: unknown): number => (typeof text === "string" ? Buffer.byteLength(text) : 0)

/** Returns a token array's length, or 0 for an invalid one. */
const tokensIn = (tokens: unknown): number => (isTokens(tokens) ? tokens.length : 0)

const sizeOf = (model: EmbeddingModel, inputs: Inputs | undefined): Either.Either<Size, InvalidRequest> => {
  if (inputs === undefined) return wrong
  const { count, lengths, unit } = inputs
  const { added_tokens_max, input_tokens_max, inputs_max } = model
  if (count > inputs_max) return refused("input", `must contain at most ${inputs_max} inputs`)
  let most = 0
  let estimate = 0
  for (const length of lengths) {
    if (unit === "tokens" && length > input_tokens_max)
      return refused("input", `must contain at most ${input_tokens_max} tokens each`)
    most += Math.min(length + added_tokens_max, input_tokens_max)
    estimate += Math.min(unit === "bytes" ? tokensEstimated(length) : length, input_tokens_max)
  }
  return lengths.length < count
    ? wrong
    : Either.right({ inputs: count, most, context: count * input_tokens_max, estimate })
}

const isTokens = (value: unknown): value is ReadonlyArray<number> =>
  Array.isArray(value) && value.length > 0 && value.every((token) => Number.isInteger(token) && token >= 0)

// ---- the response ---------------------------------------------------------------------------------------------------------------

/** The members of a response that may be long: the embeddings. */
export const longMembers: LongMembers = { names: new Set(["embedding"]), depth: 3 }

/** The assumed number of dimensions if it is unknown, typical of large models. */
const assumedDimensions = 4_096
/** Sizes in bytes: a number as JSON with all its digits, a number as base64, and the JSON around an embedding. */
const numberBytes = 24
const encodedBytes = 6
const frameBytes = 100

/** Estimates the response size in bytes. */
export const answerBytesOf = ({ inputs, model, request }: ValidRequest): number => {
  const numbers = request.dimensions ?? model.dimensions ?? assumedDimensions
  return inputs * (numbers * (request.encoding_format === "base64" ? encodedBytes : numberBytes) + frameBytes)
}

/** Returns a response's defect, for the log, or `undefined` if the response contains an embedding for each input. */
export const faultIn =
  ({ inputs }: ValidRequest) =>
  ({ data }: Readonly<Record<string, unknown>>): string | undefined =>
    Array.isArray(data) && data.length === inputs && data.every(hasEmbedding)
      ? undefined
      : "the response does not contain an embedding for each input"

const hasEmbedding = (one: unknown): boolean =>
  isObject(one) && (typeof one.embedding === "string" || Array.isArray(one.embedding))

export const tokensReported = ({ usage }: Readonly<Record<string, unknown>>): unknown =>
  isObject(usage) ? (usage.prompt_tokens ?? usage.total_tokens) : undefined

/** Returns whether the client requested base64 and the upstream sent numbers. Clients that request base64 accept nothing else. */
export const isIncomplete = ({ request }: ValidRequest, { data }: Readonly<Record<string, unknown>>): boolean =>
  request.encoding_format === "base64" &&
  !(data as ReadonlyArray<Readonly<Record<string, unknown>>>).every(({ embedding }) => typeof embedding === "string")

/** Converts a response's embeddings to base64. */
export const encoded = (body: Readonly<Record<string, unknown>>): Record<string, unknown> => ({
  ...body,
  data: (body.data as ReadonlyArray<Readonly<Record<string, unknown>>>).map((one) => ({
    ...one,
    embedding: base64Of(one.embedding)
  }))
})

export const base64Of = (embedding: unknown): unknown => {
  if (!Array.isArray(embedding)) return embedding
  const bytes = Buffer.alloc(4 * embedding.length)
  for (const [i, number] of embedding.entries()) bytes.writeFloatLE(Number(number ?? Number.NaN), 4 * i)
  return bytes.toString("base64")
}
